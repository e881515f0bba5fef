package workload

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func sortHeld(list []heldSocket) []heldSocket {
	slices.SortFunc(list, func(a, b heldSocket) int { return cmp.Compare(a.Inode, b.Inode) })
	return list
}

func asHeld(s Socket) heldSocket {
	return heldSocket{s.Inode, s.Protocol, int(s.Local.Port()), int(s.Remote.Port())}
}

func TestSockets(t *testing.T) {
	testutil.Needs(t, "pidfd")
	testutil.Netns(t)
	c, want := startHolder(t)
	p, err := ReadProcess(c.pid())
	if err != nil {
		t.Fatal(err)
	}
	var got []heldSocket
	for s, err := range Sockets(p) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Protocol != unix.IPPROTO_ICMP && !s.Local.Addr().IsLoopback() {
			t.Errorf("local address %s, want one of the loopback", s.Local)
		}
		got = append(got, asHeld(s))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := gocmp.Diff(sortHeld(want), sortHeld(got)); diff != "" {
		t.Errorf("sockets (-the owner's +ours):\n%s", diff)
	}
}

// A socket's user is who made it, as the kernel's tables have it, and not who its process
// is by now.
func TestSocketsHaveTheirMakersUser(t *testing.T) {
	testutil.Needs(t, "root", "pidfd")
	testutil.Netns(t)
	const nobody = 65534
	fd := listen(t, 4711)
	if err := unix.Fchown(fd, nobody, -1); err != nil { // as if nobody had made it
		t.Fatal(err)
	}
	p, err := ReadProcess(uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	for s, err := range Sockets(p) {
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]uint32{true: nobody}[s.Inode == inodeOf(t, fd)]; s.UID != want {
			t.Errorf("socket %+v is of user %d, want %d", s, s.UID, want)
		}
		s.Close()
	}
	for _, s := range tcpSockets(t) {
		if s.UID != nobody {
			t.Errorf("the tables have %+v", s)
		}
	}
}

// What is set through the duplicate is set on the owner's socket: a second look
// finds it. A sequence that is left early holds nothing; the suite's check for
// leaked descriptors sees to that.
func TestSocketsAreTheOwners(t *testing.T) {
	testutil.Needs(t, "pidfd")
	testutil.Netns(t)
	c, _ := startHolder(t)
	p, err := ReadProcess(c.pid())
	if err != nil {
		t.Fatal(err)
	}
	var inode uint64
	for s, err := range Sockets(p) {
		if err != nil {
			t.Fatal(err)
		}
		inode = s.Inode
		err = errors.Join(unix.SetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_PRIORITY, 11), s.Close())
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	for s, err := range Sockets(p) {
		if err != nil {
			t.Fatal(err)
		}
		priority, err := unix.GetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_PRIORITY)
		if want := map[bool]int{true: 11}[s.Inode == inode]; err != nil || priority != want {
			t.Errorf("socket %d has priority %d, %v; want %d", s.Inode, priority, err, want)
		}
		s.Close()
	}
}

func TestSocketsOfExitedProcess(t *testing.T) {
	testutil.Needs(t, "pidfd")
	self, err := ReadProcess(uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	self.Start++ // another process, which had this id
	count := 0
	for _, err := range Sockets(self) {
		count++
		if !errors.Is(err, ErrGone) {
			t.Errorf("error %v, want ErrGone", err)
		}
	}
	if count != 1 {
		t.Errorf("%d items, want the error alone", count)
	}
}
