package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

const twoWorkloads = "  gold: {match: [{port: 4000}], priority: 12}\n  iron: {match: [{user: 4242}], priority: 2}\n"

// TestStatusSeesDrift breaks what was applied in every way that others could,
// and has status name it and apply mend it.
func TestStatusSeesDrift(t *testing.T) {
	testutil.Proves(t, testutil.Drift)
	b := newBench(t)
	text := b.policyText(twoWorkloads)
	b.apply(t, text)
	index := strconv.Itoa(b.link.Index)
	generation := func() string {
		all, err := b.room().Generations()
		if err != nil || len(all) != 1 {
			t.Fatalf("generations %v, %v", all, err)
		}
		return filepath.Join(b.Scope.Pins, fmt.Sprintf("g%d", all[0]))
	}
	for _, c := range []struct {
		name, object string
		broken       int // promises
		tamper       func()
	}{
		{"the queue is gone", "link " + b.link.Name, 2, func() {
			b.here.Output("tc", "qdisc", "del", "dev", b.link.Name, "root")
		}},
		{"another root is there", "link " + b.link.Name, 2, func() {
			b.here.Output("tc", "qdisc", "replace", "dev", b.link.Name, "root", "handle", "5:", "pfifo")
		}},
		{"a class has another rate", "link " + b.link.Name, 2, func() {
			b.here.Output("tc", "class", "change", "dev", b.link.Name, "classid", "7e1f:1", "htb", "rate", "1mbit")
		}},
		{"the program is detached", "link " + b.link.Name, 2, func() {
			r, err := b.Scope.Load()
			if err != nil {
				t.Fatal(err)
			}
			if r.Links[b.link.Name].Filter {
				b.here.Output("tc", "filter", "del", "dev", b.link.Name, "egress")
			} else if err := b.room().DetachLink(b.link.Index); err != nil {
				t.Fatal(err)
			}
		}},
		{"a promise is overwritten", "workload gold", 1, func() {
			r, err := b.Scope.Load()
			if err != nil {
				t.Fatal(err)
			}
			id := r.IDs.Names["gold"].ID
			testutil.Output(t, "bpftool", "map", "update", "pinned", filepath.Join(generation(), index, "contracts"),
				"key", strconv.Itoa(int(id)&0xff), strconv.Itoa(int(id)>>8), "0", "0", "value", "1", "0", "0", "0", "1", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0")
		}},
		{"a rule is deleted", "workload iron", 1, func() {
			testutil.Output(t, "bpftool", "map", "delete", "pinned", filepath.Join(generation(), "users"), "key", "146", "16", "0", "0")
		}},
		{"the pins are gone", "link " + b.link.Name, 2, func() {
			if err := os.RemoveAll(b.Scope.Pins); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.tamper()
			s, err := b.Status(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if s.OK || !strings.HasPrefix(s.Verdict, "broken") {
				t.Errorf("verdict %q", s.Verdict)
			}
			if len(s.Differences) == 0 || s.Differences[0].Object != c.object {
				t.Errorf("differences %v, want one of %s", s.Differences, c.object)
			}
			broken := 0
			for _, j := range s.Promises {
				if j.Verdict == plan.Broken {
					broken++
				}
			}
			if broken != c.broken {
				t.Errorf("%d promises are broken, want %d: %+v", broken, c.broken, s.Promises)
			}
			if d := b.adopt(t, text); len(d) == 0 {
				t.Error("apply had nothing to mend")
			}
			if s, err := b.Status(context.Background()); err != nil || !s.OK {
				t.Errorf("after apply: %q, %v", s.Verdict, err)
			}
		})
	}
}

// adopt applies a policy and lets it replace a root of somebody else's.
func (b *bench) adopt(t *testing.T, text string) []plan.Difference {
	t.Helper()
	return b.apply(t, strings.Replace(text, "{rate", "{adopt: true, rate", 1))
}

// TestStatusChangesNothing reads in every way and looks whether anything moved.
func TestStatusChangesNothing(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.policyText(twoWorkloads))
	before := b.dump(t)
	ctx := context.Background()
	if _, err := b.Status(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ExplainPID(ctx, uint32(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	p, err := plan.ParsePacket("tcp 10.0.0.1:4000 > 10.0.0.2:9")
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.ExplainFlow(ctx, p, "")
	if err != nil {
		t.Fatal(err)
	}
	if x.Workload != "gold" || x.Agrees == nil || !*x.Agrees {
		t.Errorf("explain: %+v", x)
	}
	s, err := b.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range s.Promises {
		if j.Traffic.Packets != 0 {
			t.Errorf("%s: explaining was counted as traffic", j.Workload)
		}
	}
	b.sameAs(t, before, "reading")
}
