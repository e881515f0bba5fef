package bpf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// childEnv makes the test binary a child that sends what it is told to; its value
// is again after exec.
const (
	childEnv = "WEIR_TEST_CHILD"
	again    = "again"
)

// childMain obeys a line at a time and answers each with "ok" or an error:
//
//	udp ADDRESS     send a datagram from a new socket
//	open ADDRESS    keep a socket to ADDRESS
//	send            send a datagram from it
//	stuff N ADDRESS open N connections and write into each until it takes no more
//	connect N ADDRESS
//	                open up to N connections; tells how many, and why no more
//	listen ADDRESS  accept connections and never read
//	write           write into all of these until they take no more
//	converse N      exchange N single bytes over each; tells how many of them had a hundred in a row
//	                that took less than 100 us
//	ask N           ask for buffers of 2N bytes for all of them
//	close           reset them
//	uid N           go on as another user
//	spawn           make a child that obeys from then on, until "exit"
//	thread          make a thread and wait for its end
//	exec            begin anew, called by a thread that is not the first
func childMain(in io.Reader, out io.Writer) int {
	var kept net.Conn
	if os.Getenv(childEnv) == again {
		os.Setenv(childEnv, "1")
		fmt.Fprintln(out, "ok")
	}
	for {
		words := strings.Fields(readLine(in))
		if len(words) == 0 || words[0] == "exit" {
			return 0
		}
		var err error
		switch words[0] {
		case "udp":
			var c net.Conn
			if c, err = net.Dial("udp", words[1]); err == nil {
				_, err = c.Write([]byte("x"))
				c.Close()
			}
		case "open":
			kept, err = net.Dial("udp", words[1])
		case "send":
			_, err = kept.Write([]byte("x"))
		case "stuff":
			n, _ := strconv.Atoi(words[1])
			err = stuff(n, words[2])
		case "connect":
			n, _ := strconv.Atoi(words[1])
			fmt.Fprintln(out, "ok", connect(n, words[2]))
			continue
		case "listen":
			err = acceptAll(words[1])
		case "write":
			for _, c := range idle {
				go pump(c)
			}
		case "converse":
			n, _ := strconv.Atoi(words[1])
			var quick int
			if quick, err = converse(n); err == nil {
				fmt.Fprintln(out, "ok", quick)
				continue
			}
		case "ask":
			n, _ := strconv.Atoi(words[1])
			for _, c := range idle {
				err = errors.Join(err, c.(*net.TCPConn).SetWriteBuffer(n), c.(*net.TCPConn).SetReadBuffer(n))
			}
		case "close":
			for _, c := range idle {
				err = errors.Join(err, c.(*net.TCPConn).SetLinger(0), c.Close())
			}
		case "uid":
			n, _ := strconv.Atoi(words[1])
			err = syscall.Setuid(n)
		case "spawn":
			cmd := exec.Command("/proc/self/exe")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = in.(*os.File), os.Stdout, os.Stderr
			if err = cmd.Start(); err == nil {
				fmt.Fprintln(out, "ok", cmd.Process.Pid)
				err = cmd.Wait()
			}
		case "thread":
			tid := make(chan int)
			go onThread(func() { tid <- syscall.Gettid() })
			for gone := fmt.Sprintf("/proc/self/task/%d", <-tid); err == nil; {
				_, err = os.Stat(gone)
			}
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		case "exec":
			os.Setenv(childEnv, again)
			failed := make(chan error)
			go onThread(func() { failed <- syscall.Exec("/proc/self/exe", os.Args, os.Environ()) })
			err = <-failed
		default:
			err = fmt.Errorf("unknown command %q", words[0])
		}
		if err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		fmt.Fprintln(out, "ok")
	}
}

// stuff opens connections and writes into each until it takes no more, and then goes on
// trying, as blocking applications do.
func stuff(n int, address string) error {
	for range n {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		go pump(c)
	}
	return nil
}

// converse exchanges single bytes over each of those that are idle, and tells how many of them
// had a hundred answers in a row within 100 us.
func converse(n int) (quick int, err error) {
	b := []byte{0}
	for _, c := range idle {
		row, most := 0, 0
		for range n {
			begin := time.Now()
			if _, err := c.Write(b); err != nil {
				return 0, err
			}
			if _, err := io.ReadFull(c, b); err != nil {
				return 0, err
			}
			if row++; time.Since(begin) > 100*time.Microsecond {
				row = 0
			}
			most = max(most, row)
		}
		if most >= 100 {
			quick++
		}
	}
	return quick, nil
}

// pump writes into a connection until that ends.
func pump(c net.Conn) {
	data := make([]byte, 1<<20)
	for {
		if _, err := c.Write(data); err != nil {
			return
		}
	}
}

// idle keeps connections.
var idle []net.Conn

// connect opens connections until one fails, and says how many are open and why not more.
func connect(n int, address string) string {
	var err error
	opened := 0
	for ; opened < n && err == nil; opened++ {
		var c net.Conn
		if c, err = (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", address); err == nil {
			idle = append(idle, c)
		}
	}
	if err != nil {
		return fmt.Sprint(opened-1, " ", err)
	}
	return fmt.Sprint(opened)
}

// acceptAll listens, and keeps what it accepts.
func acceptAll(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			idle = append(idle, c)
		}
	}()
	return nil
}

// onThread calls fn on a thread that ends with it and is not the process's first.
func onThread(fn func()) {
	runtime.LockOSThread()
	if syscall.Gettid() == syscall.Getpid() {
		go onThread(fn)
		select {} // or the next would be here again
	}
	fn()
}

// readLine takes no byte more than the line: the rest may be for another.
func readLine(in io.Reader) string {
	var line []byte
	b := make([]byte, 1)
	for {
		if n, err := in.Read(b); n == 0 || err != nil || b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// A child is a process of the test binary that sends what it is told to.
type child struct {
	t   *testing.T
	pid int
	in  io.Writer
	out io.Reader
}

type childOptions struct {
	exe    string // "": the test binary
	cgroup string // directory of the v2 hierarchy
}

// startChild starts a child in a namespace; it ends with the test.
func startChild(t *testing.T, ns *testutil.Namespace, o childOptions) *child {
	t.Helper()
	if o.exe == "" {
		o.exe = "/proc/self/exe"
	}
	cmd := exec.Command(o.exe)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if o.cgroup != "" {
		dir, err := os.Open(o.cgroup)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	ns.Do(func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	return &child{t, cmd.Process.Pid, in, out}
}

// do has the child do something and returns what it says beside "ok".
func (c *child) do(format string, args ...any) string {
	c.t.Helper()
	fmt.Fprintf(c.in, format+"\n", args...)
	answer := readLine(c.out)
	rest, ok := strings.CutPrefix(answer, "ok")
	if !ok {
		c.t.Fatalf("child: %s: %s", fmt.Sprintf(format, args...), answer)
	}
	return strings.TrimSpace(rest)
}
