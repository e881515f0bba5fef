package observe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// sinkVariable makes the test binary a sink of UDP at an address, sourceVariable one that sends
// to an address for a second, loopVariable one that computes on a CPU for a moment.
const (
	sinkVariable   = "WEIR_OBSERVE_SINK"
	sourceVariable = "WEIR_OBSERVE_SOURCE"
	loopVariable   = "WEIR_OBSERVE_LOOP"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(sinkVariable) != "":
		sink(os.Getenv(sinkVariable))
	case os.Getenv(sourceVariable) != "":
		flood(os.Getenv(sourceVariable))
	case os.Getenv(loopVariable) != "":
		loopOn(os.Getenv(loopVariable))
	default:
		testutil.Leaks(m)
	}
}

// sink reads what arrives until its standard input ends. It looks once in some milliseconds, so that
// no packet has to wake it: all cost the same.
func sink(address string) {
	at, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		complain(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		complain(err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}); err != nil {
		complain(err)
	}
	fmt.Println("ready")
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	for b := make([]byte, 2048); ; time.Sleep(5 * time.Millisecond) {
		for err = nil; err == nil; {
			_, _, err = unix.Recvfrom(fd, b, 0)
		}
	}
}

func complain(err error) {
	fmt.Println(err)
	os.Exit(1)
}

// flood sends as fast as it can for a second.
func flood(address string) {
	c, err := net.Dial("udp", address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		_, _ = c.Write(make([]byte, 100)) // who does not listen is no error of ours
	}
}

// again is this test binary as something else, in a cgroup and in the caller's network namespace.
// The caller closes the directory once it runs.
func again(t *testing.T, cgroup, variable, value string) (*exec.Cmd, *os.File) {
	t.Helper()
	dir, err := os.Open(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return cmd, dir
}

// startSink starts a sink, until the end of the test.
func startSink(t *testing.T, cgroup, address string) {
	t.Helper()
	cmd, dir := again(t, cgroup, sinkVariable, address)
	defer dir.Close()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	said := make([]byte, 64)
	n, _ := out.Read(said)
	if !strings.HasPrefix(string(said[:n]), "ready") {
		t.Fatalf("the sink says %q", said[:n])
	}
}

// A source sends UDP from the caller's network namespace.
type source struct {
	t     *testing.T
	fd    int
	paced int // rounds a millisecond; 0: as many as can be
	sent  map[string]int
}

func newSource(t *testing.T) *source {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &source{t: t, fd: fd, sent: map[string]int{}}
}

// send sends one packet to each of the addresses, in turns for a time.
func (s *source) send(during time.Duration, addresses ...string) {
	s.t.Helper()
	to := make([]unix.Sockaddr, len(addresses))
	for i, a := range addresses {
		u, err := net.ResolveUDPAddr("udp4", a)
		if err != nil {
			s.t.Fatal(err)
		}
		to[i] = &unix.SockaddrInet4{Port: u.Port, Addr: [4]byte(u.IP.To4())}
	}
	packet := make([]byte, 100)
	began := time.Now()
	for rounds := 0; time.Since(began) < during; rounds++ {
		for s.paced > 0 && rounds > s.paced*int(time.Since(began).Milliseconds()) {
			time.Sleep(time.Millisecond)
		}
		for i := range to {
			if err := unix.Sendto(s.fd, packet, 0, to[i]); err == nil {
				s.sent[addresses[i]]++
			}
		}
	}
}

// loopOn computes on a CPU once its standard input has ended, and says how that went.
func loopOn(cpu string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	n, err := strconv.Atoi(cpu)
	if err == nil {
		_, err = Loop(context.Background(), n, time.Millisecond)
	}
	var unusable *UnusableCPU
	if errors.As(err, &unusable) {
		err = fmt.Errorf("%w; usable: %v", err, unusable.Usable)
	}
	fmt.Println(err)
}
