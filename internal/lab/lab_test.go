package lab

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// experimentOf finds the lab of a name.
func experimentOf(t *testing.T, name string) experiment {
	t.Helper()
	for _, e := range experiments() {
		if e.info.Name == name {
			return e
		}
	}
	t.Fatalf("no lab %s", name)
	panic("unreachable")
}

func TestList(t *testing.T) {
	names := ""
	for _, info := range List() {
		names += info.Name + " "
		if info.Summary == "" || len(info.Arms) < 2 {
			t.Errorf("%+v", info)
		}
	}
	if names != "cpu-cost limiters priority rates sharing ssh tcp-memory vrf " {
		t.Errorf("labs %q", names)
	}
}

func TestRunRefuses(t *testing.T) {
	ctx, c := context.Background(), newRawController("")
	if _, err := Run(ctx, "shs", Options{Controller: c}); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"shs"`) {
		t.Errorf("got %v", err)
	}
	for want, o := range map[string]Options{
		"no controller":                  {},
		"rate 1Mbit is not between":      {Controller: c, Rate: 1_000_000},
		"rate 100Gbit is not between":    {Controller: c, Rate: 100_000_000_000},
		"-1 repetitions are not between": {Controller: c, Repetitions: -1},
	} {
		if _, err := Run(ctx, "ssh", o); err == nil || !strings.Contains(err.Error(), "run lab ssh: "+want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestRateWords(t *testing.T) {
	for rate, want := range map[policy.Rate]string{100e6: "100 Mbit/s", 1e9: "1 Gbit/s", 2_500_000_000: "2.5 Gbit/s", 5_500_000: "5.5 Mbit/s"} {
		if got := rateWords(rate); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTrafficMainKnowsItsOwn(t *testing.T) {
	var out bytes.Buffer
	for _, args := range [][]string{nil, {"status"}, {"lab", "run"}} {
		if code, ours := TrafficMain(args, strings.NewReader(""), &out, &out); ours || code != 0 {
			t.Errorf("%q is taken for a worker", args)
		}
	}
}

// A broken controller can not put a policy into force.
type broken struct{ *rawController }

var errBroken = errors.New("no queue here")

func (broken) Apply(context.Context, string, []byte) error { return errBroken }

// TestFailureCleansUp fails and cancels labs; what would be left then the suite
// finds: processes by their pipes, namespaces by descriptors, goroutines,
// cgroups.
func TestFailureCleansUp(t *testing.T) {
	for _, name := range []string{"cpu-cost", "ssh", "priority", "limiters", "sharing", "tcp-memory"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // nothing is measured
			dir := testutil.Cgroup2(t)
			if name != "cpu-cost" { // which has no policy
				_, err := Run(context.Background(), name, Options{Controller: broken{newRawController(dir)}, Repetitions: 1})
				if !errors.Is(err, errBroken) {
					t.Error(err)
				}
			}
			enough := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(1500*time.Millisecond, func() { cancel(enough) })
			_, err := Run(ctx, name, Options{Controller: newRawController(dir), Repetitions: 1})
			if !errors.Is(err, enough) {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*", "cgroup.procs")); len(left) > 0 {
				t.Errorf("it left cgroups: %q", left)
			}
		})
	}
}

// TestPoliciesAreValid gives the labs' policies to the parser.
func TestPoliciesAreValid(t *testing.T) {
	o := Options{Controller: newRawController(""), Rate: 1_500_000_000}
	s, err := newSession(experimentOf(t, "priority"), o)
	if err != nil {
		t.Fatal(err)
	}
	ssh := &sshLab{session: s}
	ssh.bottleneck.Device = "line"
	priority := &priorityLab{session: s, flows: [2]*flow{{name: "first", cgroup: "/a-1.slice/weir-lab-1"}, {name: "second", cgroup: "/b"}}}
	priority.link.Device = "line"
	sharing := sharingOn(s)
	for name, text := range map[string]string{
		"ssh": ssh.policy(), "priority": priority.policy(levels{0, 15}), "sharing": sharing.policy("weir"),
	} {
		p, err := policy.Parse(name+".yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if p.Links[0].Rate != o.Rate || len(p.Workloads) == 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestMain(m *testing.M) {
	if code, ours := TrafficMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); ours {
		os.Exit(code)
	}
	testutil.Leaks(m)
}
