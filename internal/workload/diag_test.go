package workload

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// The kernel's tables must show what the owner of the sockets says, and the
// cgroup must be the one in which the owner was started.
func TestSocketTable(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	testutil.Netns(t)
	cgroup := testutil.Cgroup2(t)
	dir, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c, held := startHolderWith(t, &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())})
	id, err := CgroupID(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	table, err := SocketTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, h := range held {
		if h.Protocol != unix.IPPROTO_TCP && h.Protocol != unix.IPPROTO_UDP {
			continue
		}
		checked++
		i := slices.IndexFunc(table, func(e SocketEntry) bool { return e.Inode == h.Inode })
		if i < 0 {
			t.Errorf("socket %+v is not in the table", h)
			continue
		}
		e := table[i]
		if int(e.Protocol) != h.Protocol || int(e.Family) != h.Family || int(e.Local.Port()) != h.Port || int(e.Remote.Port()) != h.PeerPort {
			t.Errorf("entry %+v, the owner says %+v", e, h)
		}
		if e.Cgroup != id {
			t.Errorf("entry %+v is not in cgroup %d", e, id)
		}
	}
	if checked != 8 { // listener, client and server of two families, and their UDP
		t.Errorf("%d TCP and UDP sockets held, want 8", checked)
	}
	for _, e := range table { // nothing else is in this namespace but the subflows of MPTCP
		if e.Inode != 0 && !slices.ContainsFunc(held, func(h heldSocket) bool { return h.Inode == e.Inode }) {
			t.Errorf("entry %+v is nobody's", e)
		}
	}
	owners, err := Owners(t.Context(), held[0].Inode)
	if err != nil || len(owners) != 1 || owners[0].PID != c.pid() {
		t.Errorf("owners %+v, %v; want process %d", owners, err, c.pid())
	}
}

func TestFindSockets(t *testing.T) {
	testutil.Needs(t, "root")
	testutil.Netns(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 0x2a); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: 4711, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 1); err != nil {
		t.Fatal(err)
	}
	client, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(client)
	mapped := &unix.SockaddrInet6{Port: 4711, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}
	if err := unix.Bind(client, &unix.SockaddrInet6{Port: 4712, Addr: mapped.Addr}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(client, mapped); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	for text, owner := range map[string]int{
		"tcp 127.0.0.1:4711":                fd,
		"tcp 127.0.0.1:4712 127.0.0.1:4711": client,
	} {
		if err := unix.Fstat(owner, &st); err != nil {
			t.Fatal(err)
		}
		spec, err := ParseSocketSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := FindSockets(t.Context(), spec)
		if err != nil || len(found) != 1 || found[0].Inode != st.Ino {
			t.Errorf("%s: found %+v, %v; want inode %d", text, found, err, st.Ino)
			continue
		}
		if want := map[bool]uint32{true: 0x2a}[owner == fd]; found[0].Mark != want {
			t.Errorf("%s: mark %#x, want %#x", text, found[0].Mark, want)
		}
		// ss prints what it reads from the same tables by its own decoder.
		if _, err := exec.LookPath("ss"); err == nil {
			out := testutil.Output(t, "ss", "-tanHe")
			if !strings.Contains(out, "ino:"+itoa(uint32(found[0].Inode))) {
				t.Errorf("%s: inode %d is not in ss's list:\n%s", text, found[0].Inode, out)
			}
		}
	}
	spec := SocketSpec{Protocol: unix.IPPROTO_UDP, Local: addrPort(mapped)}
	if found, err := FindSockets(t.Context(), spec); err != nil || len(found) != 0 {
		t.Errorf("%s: found %+v, %v; want nothing", spec, found, err)
	}
}

func TestParseDiagRefuses(t *testing.T) {
	for _, data := range [][]byte{nil, make([]byte, diagMessageSize-1), append(make([]byte, diagMessageSize), 9, 0, 1, 0)} {
		if e, err := parseDiag(data); err == nil {
			t.Errorf("%d bytes were read as %+v", len(data), e)
		}
	}
}
