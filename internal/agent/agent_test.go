package agent

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/testutil"
)

// A bench is a scope with two hosts on a wire: "here", whose link eth0 is under
// contract, and "there".
type bench struct {
	*Agent
	here, there *testutil.Namespace
	link, far   testutil.End
	cgroup      string // path below the v2 root
	dir         string // the same as a directory
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchOn(t, testutil.VethOptions{})
}

// newBenchOn is newBench with a wire that is unusual.
func newBenchOn(t testing.TB, wire testutil.VethOptions) *bench {
	t.Helper()
	testutil.Needs(t, "root", "cgroup2")
	b := &bench{here: testutil.NewNamespace(t), there: testutil.NewNamespace(t)}
	b.link, b.far = testutil.Veth(t, b.here, b.there, wire)
	b.dir = testutil.Cgroup2(t)
	b.cgroup = "/" + filepath.Base(b.dir)
	b.Agent = &Agent{
		Version: "test",
		Scope: state.Scope{
			Cgroup: b.dir, Pins: filepath.Join(testutil.BPFFS(t), "weir"), Run: t.TempDir(), Netns: b.here.Path(),
		},
	}
	t.Cleanup(func() {
		if err := b.Reset(context.Background()); err != nil {
			t.Errorf("reset: %v", err)
		}
	})
	return b
}

// apply reads and applies a policy, as the door does, and fails the test if that
// fails.
func (b *bench) apply(t testing.TB, text string) []plan.Difference {
	t.Helper()
	return applyText(t, b.Agent, text)
}

func applyText(t testing.TB, a *Agent, text string) []plan.Difference {
	t.Helper()
	p, err := a.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	done, err := a.Apply(context.Background(), p, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return done.Changes
}

// policyText is a policy for the bench's link.
func (b *bench) policyText(workloads string) string { return b.policyAt(100, workloads) }

// policyAt is policyText with another rate, in Mbit/s.
func (b *bench) policyAt(rate int, workloads string) string {
	return fmt.Sprintf("version: 1\nlinks:\n  %s: {rate: %dMbit}\nworkloads:\n%s", b.link.Name, rate, workloads)
}

func TestApplyTwice(t *testing.T) {
	b := newBench(t)
	text := b.policyText("  gold:\n    match: [{port: 4000}]\n    priority: 15\n")
	if d := b.apply(t, text); len(d) != 2 {
		t.Fatalf("the first apply changed %v, want link and workload", d)
	}
	if again := b.apply(t, text); len(again) != 0 {
		t.Fatalf("the second apply changes %v", again)
	}
	if out := b.here.Output("tc", "qdisc", "show", "dev", b.link.Name); !strings.Contains(out, "qdisc htb 7e1f: root") {
		t.Fatalf("no root of ours:\n%s", out)
	}
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	if address == "" {
		address = "0.0.0.0:0"
	}
	l, err := net.Listen("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
