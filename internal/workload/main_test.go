package workload

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

const helperVariable = "WEIR_WORKLOAD_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		holdSockets()
		return
	}
	testutil.Leaks(m)
}

// A child is a process of a test.
type child struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func (c child) pid() uint32 { return uint32(c.cmd.Process.Pid) }

// end kills the child and waits for it.
func (c child) end() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// start runs a command in the caller's namespaces until the test ends. Its
// standard input stays open as long, so it may wait for its end.
func start(t *testing.T, cmd *exec.Cmd) child {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := child{cmd, bufio.NewReader(stdout)}
	t.Cleanup(func() {
		stdin.Close()
		c.end()
	})
	return c
}

// startHolder starts a process that holds sockets of all kinds and tells which.
func startHolder(t *testing.T) (child, []heldSocket) {
	t.Helper()
	return startHolderWith(t, nil)
}

func startHolderWith(t *testing.T, attributes *syscall.SysProcAttr) (child, []heldSocket) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.SysProcAttr = attributes
	cmd.Env = append(os.Environ(), helperVariable+"=1")
	c := start(t, cmd)
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("read from holder: %v", err)
	}
	var held []heldSocket
	if err := json.Unmarshal(line, &held); err != nil {
		t.Fatal(err)
	}
	return c, held
}

// A heldSocket is a socket as its owner sees it.
type heldSocket struct {
	Inode          uint64
	Protocol       int
	Port, PeerPort int
}

// holdSockets is the helper process: it opens sockets, prints them and waits
// for the end of its input.
func holdSockets() {
	var held []heldSocket
	add := func(fd int) {
		var st unix.Stat_t
		must(unix.Fstat(fd, &st))
		h := heldSocket{Inode: st.Ino}
		h.Protocol, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
		local, err := unix.Getsockname(fd)
		must(err)
		h.Port = portOf(local)
		if peer, err := unix.Getpeername(fd); err == nil {
			h.PeerPort = portOf(peer)
		}
		held = append(held, h)
	}
	loopback := map[int]unix.Sockaddr{
		unix.AF_INET:  &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}},
		unix.AF_INET6: &unix.SockaddrInet6{Addr: [16]byte{15: 1}},
	}
	for family, address := range loopback {
		for _, protocol := range []int{unix.IPPROTO_TCP, unix.IPPROTO_MPTCP} {
			listener, err := unix.Socket(family, unix.SOCK_STREAM, protocol)
			if err != nil {
				continue // a kernel without MPTCP
			}
			must(unix.Bind(listener, address))
			must(unix.Listen(listener, 1))
			name, err := unix.Getsockname(listener)
			must(err)
			client, err := unix.Socket(family, unix.SOCK_STREAM, protocol)
			must(err)
			must(unix.Connect(client, name))
			server, _, err := unix.Accept(listener)
			must(err)
			add(listener)
			add(client)
			add(server)
			_, err = unix.Dup(client) // one socket, two descriptors
			must(err)
		}
		udp, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
		must(err)
		must(unix.Bind(udp, address))
		add(udp)
	}
	raw, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	must(err)
	add(raw)
	_, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0) // not to be seen
	must(err)
	must(json.NewEncoder(os.Stdout).Encode(held))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func portOf(address unix.Sockaddr) int {
	switch a := address.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return -1
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// sleepPath is the path of the program that the tests start. A copy of it has to
// be called sleep too: it may be busybox.
func sleepPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
