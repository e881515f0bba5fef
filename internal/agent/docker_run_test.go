package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// A dockyard is a bench whose host runs Docker as Debian packages it: dockerd,
// containerd and runc, each container with a veth pair of its own on a bridge. The
// bench's link is a port of that bridge too, so what containers send to the far end
// is bridged, not routed: its packets still have their sockets when they leave by it.
type dockyard struct {
	*bench
	bridge netlink.Link
	bin    string // directory of Docker's programs
	socket string // of dockerd
	config string // directory of the client's own configuration
}

// engine starts dockerd in a mount, PID and cgroup namespace of its own, as the first
// process there: they end with it, and so do containerd, shims, containers and all
// mounts. What it would write beside the temporary file systems is read-only, and the
// test's cgroup is all that it sees of the hierarchy. Without modprobe in PATH it loads
// nothing into the kernel.
const engine = `set -e
bin=$1
shift
mount -o remount,bind,ro /
mount -t proc proc /proc
mount --bind /proc/sys/kernel /proc/sys/kernel
mount -o remount,bind,ro /proc/sys/kernel
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /etc
mount -t tmpfs tmpfs /run
mkdir /sys/fs/cgroup/engine
echo 0 >/sys/fs/cgroup/engine/cgroup.procs
export PATH="$bin" LD_LIBRARY_PATH="${bin%/*}/lib" TMPDIR=/run
exec dockerd "$@"
`

func newDockyard(t *testing.T) *dockyard {
	t.Helper()
	testutil.Needs(t, "docker", "bridge link", "iperf3", "sh", "BPF atomics", "BPF tail calls")
	cache, err := feature.Cache()
	if err != nil {
		t.Fatal(err)
	}
	d := &dockyard{bench: newBench(t), bin: filepath.Join(cache, "docker", "bin"), config: t.TempDir()}
	d.here.Do(func() { err = d.build() })
	if err != nil {
		t.Fatalf("build bridge: %v", err)
	}
	// The lower half of the subnet is for the bridge and the far end.
	upper := d.link.IPv4.Masked().Addr().As4()
	upper[3] = 128
	d.startEngine(t, "--bridge", d.bridge.Attrs().Name, "--fixed-cidr", netip.PrefixFrom(netip.AddrFrom4(upper), 25).String())
	d.makeImage(t)
	return d
}

// build makes the bridge and moves the link and its address to it.
func (d *dockyard) build() error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "docker0"
	d.bridge = &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(d.bridge); err != nil {
		return err
	}
	link, err := netlink.LinkByIndex(d.link.Index)
	if err != nil {
		return err
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range addrs {
		if err := netlink.AddrDel(link, &a); err != nil {
			return err
		}
		if err := netlink.AddrAdd(d.bridge, &netlink.Addr{IPNet: a.IPNet}); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetMaster(link, d.bridge); err != nil {
		return err
	}
	// Where the kernel has it, the bridge would show packets to IPv4's netfilter as if
	// it routed them, and take their sockets as routing does.
	err = os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-iptables", []byte("0"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return netlink.LinkSetUp(d.bridge)
}

// startEngine starts dockerd and waits until it answers.
func (d *dockyard) startEngine(t *testing.T, args ...string) {
	t.Helper()
	// The name is one that no dockerd of this host has: until the engine has
	// mounted its own /run, this host's is there.
	const socket = "/run/weir-test.sock"
	args = append(args, "--host", "unix://"+socket, "--data-root", "/run/docker-data", "--exec-root", "/run/docker",
		"--pidfile", "/run/docker.pid", "--log-level", "warn", "--storage-driver", "vfs", "--exec-opt", "native.cgroupdriver=cgroupfs",
		"--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false")
	cmd := exec.Command(testutil.Tool(t, "unshare"), append([]string{"--mount", "--cgroup", "sh", "-c", engine, "sh", d.bin}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	log, err := os.Create(filepath.Join(t.TempDir(), "dockerd.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("dockerd:\n%s", text)
		}
	})
	cmd.Stdout, cmd.Stderr = log, log
	launch(t, d.here, d.dir, cmd)
	d.socket = fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, socket)
	deadline := time.Now().Add(30 * time.Second)
	for {
		out, err := d.client("version").CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("dockerd does not answer: %v\n%s", err, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// client is a docker command.
func (d *dockyard) client(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(d.bin, "docker"), args...)
	cmd.Env = []string{"DOCKER_HOST=unix://" + d.socket, "DOCKER_CONFIG=" + d.config}
	return cmd
}

// docker runs a docker command and returns what it printed on standard output.
func (d *dockyard) docker(t *testing.T, args ...string) string {
	t.Helper()
	return printed(t, d.client(args...))
}

func printed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// makeImage makes the image "iperf3" of this host's program and the libraries that
// it loads.
func (d *dockyard) makeImage(t *testing.T) {
	t.Helper()
	cmd := d.client("import", "--change", `ENTRYPOINT ["`+testutil.Tool(t, "iperf3")+`"]`, "-", "iperf3")
	files := exec.Command("sh", "-c", `tar --create --dereference --absolute-names "$1" $(ldd "$1" | grep -o '/[^ ]*')`, "sh", testutil.Tool(t, "iperf3"))
	var err error
	if cmd.Stdin, err = files.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := files.Start(); err != nil {
		t.Fatal(err)
	}
	printed(t, cmd)
	if err := files.Wait(); err != nil {
		t.Fatalf("%s: %v", files, err)
	}
}

// A container runs an iperf3 server, which sends to those that ask for it.
type container struct {
	ip   string
	veth string // name of the host's end of its veth pair
}

// run starts a container and waits until its server listens.
func (d *dockyard) run(t *testing.T, name string) container {
	t.Helper()
	before := d.veths(t)
	// On a terminal it says at once that it listens.
	d.docker(t, "run", "--detach", "--tty", "--name", name, "--tmpfs", "/tmp", "iperf3", "--server")
	c := container{ip: d.docker(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name)}
	for veth := range d.veths(t) {
		if !before[veth] {
			c.veth = veth
		}
	}
	if c.ip == "" || c.veth == "" {
		t.Fatalf("a container without network: %+v", c)
	}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(d.docker(t, "logs", name), "listening"); {
		if time.Now().After(deadline) {
			t.Fatalf("the server in container %s does not listen", name)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return c
}

// veths are the host's ends of the containers' veth pairs.
func (d *dockyard) veths(t *testing.T) map[string]bool {
	t.Helper()
	var links []netlink.Link
	var err error
	d.here.Do(func() { links, err = netlink.LinkList() })
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, l := range links {
		if a := l.Attrs(); a.MasterIndex == d.bridge.Attrs().Index && a.Index != d.link.Index {
			found[a.Name] = true
		}
	}
	return found
}
