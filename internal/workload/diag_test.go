package workload

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// The kernel's tables must show what the owner of the sockets says, and the
// cgroup must be the one in which the owner was started.
func TestDumpSockets(t *testing.T) {
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
	table := dumpAll(t)
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
		if int(e.Protocol) != h.Protocol || int(e.Local.Port()) != h.Port || int(e.Remote.Port()) != h.PeerPort || !e.Local.Addr().IsLoopback() {
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

// dumpAll lists all TCP and UDP sockets of the namespace.
func dumpAll(t *testing.T) (table []SocketEntry) {
	t.Helper()
	conn, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			entries, err := dumpSockets(conn, family, SocketSpec{Protocol: protocol})
			if err != nil {
				t.Fatal(err)
			}
			table = append(table, entries...)
		}
	}
	return table
}

// listen opens a TCP socket on 127.0.0.1 that others may share the port with.
func listen(t *testing.T, port int) (fd int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 1))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func inodeOf(t *testing.T, fd int) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

func TestFindSockets(t *testing.T) {
	testutil.Needs(t, "root")
	testutil.Netns(t)
	listener := listen(t, 4711)
	shared, sharer := listen(t, 4713), listen(t, 4713)
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
	for text, want := range map[string][]uint64{
		"tcp 127.0.0.1:4711":                {inodeOf(t, listener)},
		"tcp 127.0.0.1:4712 127.0.0.1:4711": {inodeOf(t, client)},
		"tcp 127.0.0.1:4713":                {inodeOf(t, shared), inodeOf(t, sharer)},
		"tcp 127.0.0.2:4711":                nil,
		"udp 127.0.0.1:4711":                nil,
	} {
		spec, err := ParseSocketSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := FindSockets(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, e := range found {
			got = append(got, e.Inode)
			if e.Local != netip.MustParseAddrPort(strings.Fields(text)[1]) {
				t.Errorf("%s: local end %s", text, e.Local)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: found inodes %d, want %d", text, got, want)
		}
		// ss prints what it reads from the same tables by its own decoder.
		if _, err := exec.LookPath("ss"); err == nil {
			out := testutil.Output(t, "ss", "-tanHe")
			for _, inode := range want {
				if !strings.Contains(out, "ino:"+itoa(uint32(inode))) {
					t.Errorf("%s: inode %d is not in ss's list:\n%s", text, inode, out)
				}
			}
		}
	}
}

// A socket that was passed on has several owners, and one without a descriptor
// none.
func TestOwners(t *testing.T) {
	testutil.Needs(t, "root")
	testutil.Netns(t)
	fd := listen(t, 4711)
	heir, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(heir), "socket")
	defer file.Close()
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{file}
	c := start(t, cmd)
	owners, err := Owners(t.Context(), inodeOf(t, fd))
	if err != nil {
		t.Fatal(err)
	}
	var pids []uint32
	for _, p := range owners {
		pids = append(pids, p.PID)
	}
	want := []uint32{uint32(os.Getpid()), c.pid()}
	slices.Sort(want)
	if !slices.Equal(pids, want) {
		t.Errorf("owners %d, want %d", pids, want)
	}
	if owners, err := Owners(t.Context(), 0); err != nil || len(owners) != 0 {
		t.Errorf("a socket in TIME_WAIT has owners %+v, %v", owners, err)
	}
}

func TestParseDiagRefuses(t *testing.T) {
	for _, data := range [][]byte{nil, make([]byte, diagMessageSize-1), append(make([]byte, diagMessageSize), 9, 0, 1, 0)} {
		if e, err := parseDiag(data); err == nil {
			t.Errorf("%d bytes were read as %+v", len(data), e)
		}
	}
}
