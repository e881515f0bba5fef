package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// The test binary is weir itself where it is started by that name. The others
// are what scripts need and no host has.
func TestMain(m *testing.M) {
	if code, ours := lab.TrafficMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); ours {
		os.Exit(code)
	}
	if os.Getenv(playVar) != "" {
		os.Exit(liveMain())
	}
	testscript.Main(testutil.Checked(m), map[string]func(){"weir": weirMain, "talk": talkMain, "stuff": stuffMain})
}

// The variables by which a test hands weir a scope of its own. The product knows
// none of them.
const (
	scopeVar     = "WEIR_TEST_SCOPE"
	terminalsVar = "WEIR_TEST_TERMINALS"
	logVar       = "WEIR_TEST_LOG"
	filesVar     = "WEIR_TEST_FILES"
)

// weirMain is main in a scope of the test's.
func weirMain() {
	text := os.Getenv(scopeVar)
	if text == "" {
		main()
		return
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	e := system()
	e.scope = func() (s state.Scope, err error) { return s, json.Unmarshal([]byte(text), &s) }
	e.terminals, e.systemLog = os.Getenv(terminalsVar), os.Getenv(logVar)
	e.files = filepath.Join("/", os.Getenv(filesVar))
	e.completeIn = time.Minute // a virtual machine is slow
	os.Exit(run(ctx, e))
}

// talkMain sends datagrams and waits to be told to end where it is asked to:
//
//	talk ADDRESS:PORT PACKETS [stay]
func talkMain() {
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(os.Args[1]))
	c, err := net.ListenUDP("udp", nil) // not connected: nobody may listen there
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	n, _ := strconv.Atoi(os.Args[2])
	send := func() {
		for range n {
			if _, err := c.WriteTo(make([]byte, 100), to); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	send()
	if len(os.Args) > 3 {
		for b := make([]byte, 1); ; send() { // again for each byte, until there is no more
			if _, err := io.ReadFull(os.Stdin, b); err != nil {
				return
			}
		}
	}
}

// stuffMain fills a connection to itself of which neither end reads, and runs a command
// meanwhile:
//
//	stuff ADDRESS:PORT COMMAND [ARGS]
func stuffMain() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	l, err := net.Listen("tcp", os.Args[1])
	check(err)
	c, err := net.Dial("tcp", os.Args[1])
	check(err)
	defer c.Close()
	defer l.Close()
	accepted, err := l.Accept()
	check(err)
	defer accepted.Close()
	for err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = c.Write(make([]byte, 64<<10))
	}
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	check(cmd.Run())
}

// Each file below testdata is a page of the manual: one behaviour a comment.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           testutil.Condition,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "host": makeHost, "here": here,
		},
	})
}

// exits runs a command and holds its exit code against the first argument:
//
//	exits 64 weir chekc
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
		if status := exit.Sys().(syscall.WaitStatus); status.Signaled() { // as shells have it
			got = 128 + int(status.Signal())
		}
	case err != nil:
		ts.Fatalf("run %s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// weir is the program as a process of its own, for what a script can not do.
func weir(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Open("/proc/self/exe") // by descriptor: not everybody may walk to its path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { self.Close() })
	cmd := exec.Command("/proc/self/fd/3", args...)
	cmd.Args[0] = "weir"
	cmd.ExtraFiles = []*os.File{self}
	cmd.Dir = "/"
	return cmd
}
