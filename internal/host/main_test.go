package host

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// helper names what the test binary does instead of testing, for tests that
// need a process with other privileges.
const helper = "WEIR_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helper) {
	case "":
		testutil.Leaks(m)
	case "capabilities":
		missing, err := MissingCapabilities()
		fmt.Println("missing", strings.Join(missing, " "))
		if err != nil {
			fmt.Println(err)
		}
	case "probe":
		f := Probe(context.Background())
		for name, why := range f.Unknown {
			fmt.Println("unknown", name+":", why)
		}
		if f.TCX || f.ClsBPF || f.SKStorage || f.SockCreate || f.RawTracepoint || f.PidfdGetfd || f.NetPrio || f.Atomics || f.TailCalls || f.SockOps {
			fmt.Println("found something")
		}
	case "socket":
		openWhenTold()
	}
}

// openWhenTold opens a UDP socket when a line comes in, says its port and waits
// for the end of the input.
func openWhenTold() {
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.LocalAddr().(*net.UDPAddr).Port)
	_, _ = in.ReadString('\n')
	c.Close()
}

// asNobody runs a helper as a user without privileges and returns what it
// prints.
func asNobody(t *testing.T, what string) string {
	t.Helper()
	return as(t, what, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
}

func as(t *testing.T, what string, attributes *syscall.SysProcAttr) string {
	t.Helper()
	testutil.Needs(t, "root")
	self, err := os.Open("/proc/self/exe") // by descriptor: not everybody may walk to its path
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = append(os.Environ(), helper+"="+what)
	cmd.Dir = "/"
	cmd.SysProcAttr = attributes
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run %s: %v\n%s", what, err, out)
	}
	return string(out)
}
