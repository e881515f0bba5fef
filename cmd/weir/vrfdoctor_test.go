package main

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// serveNames answers each question of type A by 192.0.2.7 and all others by nothing, until the
// end of the test. With a device its socket is bound to that.
func serveNames(t *testing.T, ns *testutil.Namespace, address, device string) {
	t.Helper()
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) {
			if device != "" {
				err = unix.BindToDevice(int(fd), device)
			}
		})
		return err
	}}
	var c net.PacketConn
	var err error
	ns.Do(func() { c, err = config.ListenPacket(context.Background(), "udp4", address) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			end := 12 // of the question: a name, its type, its class
			for end < n && b[end] != 0 {
				end += 1 + int(b[end])
			}
			end += 5
			if end > n {
				continue
			}
			answer := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, b[12:end]...)
			if binary.BigEndian.Uint16(b[end-4:]) == 1 {
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 7)
			}
			_, _ = c.WriteTo(answer, from)
		}
	}()
}

// files makes /etc and /run such as a host with systemd-resolved has, for this mount namespace alone.
const resolvedFiles = `set -e
mount --make-rprivate /
mount -t tmpfs none /etc; mount -t tmpfs none /run; mkdir -p /run/systemd/resolve
printf 'nameserver 127.0.0.53\noptions edns0 trust-ad\n' >/run/systemd/resolve/stub-resolv.conf
echo 'nameserver 10.7.1.2' >/run/systemd/resolve/resolv.conf
ln -s ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
echo 'hosts: files dns' >/etc/nsswitch.conf
set +e
`

// A VRF whose lookups go to a stub outside of it is found, told in one sentence, mended for what runs
// in it alone, and put back. What is said to mend a finding does.
func TestVRFDoctor(t *testing.T) {
	testutil.Needs(t, "vrf link", "ip", "nsenter", "getent")
	h := newHost(t, "eth0", "eth1")
	for _, line := range []string{
		"link add mgmt up type vrf table 1000", "link set eth1 vrf mgmt", "route add default via 10.7.1.2 vrf mgmt",
	} {
		h.here.Output("ip", strings.Fields(line)...)
	}
	serveNames(t, h.there, "10.7.1.2:53", "")
	serveNames(t, h.here, "127.0.0.53:53", "lo")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := resolvedFiles + `
echo $$ >"$cgroup/cgroup.procs"
echo A; getent hosts www.example.org
echo B; weir vrf exec mgmt -- getent hosts www.example.org; echo "getent $?"
echo C; weir vrf doctor mgmt; echo "exit $?"
echo D; ip addr add 127.0.0.1/8 dev mgmt; weir vrf doctor mgmt --color never | grep dns
echo E; weir vrf doctor mgmt --fix | grep -e wrote -e dns; cat /etc/weir/vrf/mgmt/resolv.conf
echo F; weir vrf exec mgmt -- sh -c 'cat /etc/resolv.conf; getent hosts www.example.org; ls /run/systemd/resolve; weir vrf exec default -- cat /etc/resolv.conf'
echo G; cat /etc/resolv.conf
echo H; weir vrf doctor --undo; ls /etc; weir vrf exec mgmt -- cat /etc/resolv.conf
echo I; weir vrf doctor mgmt --fix --dns 10.7.1.9; echo "exit $?"; weir reset | head -1
echo K; weir vrf doctor --color never | sed -n 's/^ *mend:  //p' | sh -ex; weir vrf doctor; echo "exit $?"
echo J; weir vrf doctor --json
`
	bin := t.TempDir()
	if err := os.Symlink(self, bin+"/weir"); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nsenter", "--net="+h.here.Path(), "sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	cmd.Env = append(append(os.Environ(), h.vars(t)...), "PATH="+bin+":"+os.Getenv("PATH"), filesVar+"=", "cgroup="+h.scope.Cgroup)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run()
	out := said.String()
	t.Log(out)
	part := func(from, to string) string {
		_, rest, _ := strings.Cut("\n"+out, "\n"+from+"\n")
		text, _, _ := strings.Cut(rest, "\n"+to+"\n")
		return strings.Join(strings.Fields(text), " ")
	}
	for _, tt := range []struct{ from, to, want string }{
		{"A", "B", "192.0.2.7 www.example.org"},
		{"B", "C", "getent 2"},
		{"C", "D", "fail mgmt/dns 127.0.0.53: "},
		{"C", "D", " is bound to lo, which mgmt does not reach, and its own queries leave outside of mgmt stops: names are not resolved in mgmt (apt, docker pull, ssh to a name) mend: weir vrf doctor mgmt --fix"},
		{"C", "D", "warn rules the rule local comes before l3mdev"},
		{"C", "D", "warn mgmt/routes no unreachable route"},
		{"C", "D", "warn mgmt/loopback mgmt has no 127.0.0.1 and no ::1"},
		{"C", "D", "exit 1"},
		{"D", "E", "fail mgmt/dns 127.0.0.53: "},
		{"E", "F", "wrote /etc/weir/vrf/mgmt/resolv.conf ok mgmt/dns what weir vrf exec runs there asks 10.7.1.2"},
		{"E", "F", "removes it. nameserver 10.7.1.2 options edns0"},
		{"F", "G", "removes it. nameserver 10.7.1.2 options edns0 192.0.2.7 www.example.org stub-resolv.conf nameserver 127.0.0.53"},
		{"G", "H", "nameserver 127.0.0.53 options edns0 trust-ad"},
		{"H", "I", "removed /etc/weir/vrf/mgmt/resolv.conf nsswitch.conf resolv.conf nameserver 127.0.0.53"},
		{"I", "K", "error: vrf doctor mgmt --fix: no name server answers in the VRF (10.7.1.9: no "},
		{"K", "J", "ok mgmt/dns what weir vrf exec runs there asks 10.7.1.2 (/etc/weir/vrf/mgmt/resolv.conf), which answers; what vrf: of a policy binds"},
		{"K", "J", " exit 0"},
		{"I", "K", "exit 1 Nothing of Weir's was here."},
	} {
		if got := part(tt.from, tt.to); !strings.Contains(got, tt.want) {
			t.Errorf("%s: no %q in\n%s", tt.from, tt.want, got)
		}
	}
	if mended := part("K", "J"); strings.Contains(mended, "warn") || strings.Contains(mended, "fail") {
		t.Errorf("not mended: %s", mended)
	}
	_, report, _ := strings.Cut(out, "\nJ\n")
	fits(t, "vrf-doctor", []byte(report))
	_, list := h.weir(t, "vrf", "list", "--json")
	fits(t, "vrfs", list)
	_, show := h.weir(t, "vrf", "show", "mgmt", "--json")
	fits(t, "vrf", show)
	_, identity := h.weir(t, "vrf", "identify", "1", "--json")
	fits(t, "vrf-identify", identity)
}
