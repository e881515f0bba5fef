package testutil

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil/thread"
)

// suite is a whole test run that does one thing.
type suite func()

func (s suite) Run() int { s(); return 0 }

// TestLeaks runs suites that leave one thing each. Every one has its cleanup,
// which comes after the check.
func TestLeaks(t *testing.T) {
	Needs(t, "root", "cgroup2", "cgroup_skb")
	stop := make(chan struct{})
	for _, tt := range []struct {
		name, want string
		leave      func(t *testing.T)
	}{
		{name: "nothing", leave: func(*testing.T) {}},
		{name: "goroutine", want: "found unexpected goroutines", leave: func(t *testing.T) {
			go func() { <-stop }()
			t.Cleanup(func() { close(stop) })
		}},
		{name: "descriptor", want: "descriptor of /dev/null", leave: func(t *testing.T) {
			f, err := os.Open("/dev/null")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
		}},
		{name: "thread", want: "thread in net:[", leave: leaveThread},
		{name: "mount", want: "mount of bpf at", leave: func(t *testing.T) { BPFFS(t) }},
		{name: "cgroup", want: "cgroup /", leave: func(t *testing.T) { Cgroup2(t) }},
		{name: "link", want: "BPF link", leave: leaveLink},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			c := checked{suite(func() { tt.leave(t) }), &out, filepath.Join(t.TempDir(), "suites"), 100 * time.Millisecond}
			code := c.Run()
			if (code != 0) != (tt.want != "") || !strings.Contains(out.String(), tt.want) {
				t.Errorf("ended with %d and %q, want %q", code, &out, tt.want)
			}
		})
	}
}

// leaveThread holds a thread in a namespace of its own, as a test does that
// forgets to leave it.
func leaveThread(t *testing.T) {
	entered, leave := make(chan error), make(chan struct{})
	go thread.Run(func() error {
		entered <- unix.Unshare(unix.CLONE_NEWNET)
		<-leave
		return nil
	})
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(leave) })
}

// leaveLink pins a link, so that it stays without a descriptor.
func leaveLink(t *testing.T) {
	dir, group := BPFFS(t), Cgroup2(t)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_leak", Type: ebpf.CGroupSKB, AttachType: ebpf.AttachCGroupInetEgress, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: group, Attach: ebpf.AttachCGroupInetEgress, Program: p})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Pin(filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
}

func TestAdded(t *testing.T) {
	got := added([]string{"a", "b"}, []string{"b", "a", "a", "c"})
	if strings.Join(got, " ") != "a c" {
		t.Errorf("got %q, want a and c", got)
	}
}
