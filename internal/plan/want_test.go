package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

func TestWanted(t *testing.T) {
	p := parsed(t, limited20+"  held: {match: [{user: carol}], egress: {max: 64.003Kbit}, ingress: {max: 64.009Kbit, method: pace}}\ndefault: {priority: {eth0: 6}}\n")
	f := hostOf(p)
	w, errs := Wanted(p, f, IDs{}, []Explicit{
		{"pid 7", policy.Contract{Priority: policy.Priority{Default: 11}}},
		{"pid 8", policy.Contract{Priority: policy.Priority{Default: policy.Unset}, Egress: policy.Egress{Limit: policy.Limit{Max: 70_001}}}},
		{"pid 9", policy.Contract{Priority: policy.Priority{Default: policy.Unset}, Ingress: policy.Bandwidth{Limit: policy.Limit{Max: 80_001}}}},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ssh, batch, held, set := w.Contracts["ssh"], w.Contracts["batch"], w.Contracts["held"], w.Contracts["pid 7"]
	below, gets := w.Contracts["pid 8"], w.Contracts["pid 9"]
	htb := func(c uint32) uint32 { return RootHandle<<16 | w.Links["eth0"].Queue.ClassMinor(int(c), 0) }
	for link, want := range map[string]map[ContractID]Promise{
		"eth0": {
			Unclaimed: {Priority: htb(3)}, Unclassified: {Priority: htb(3)}, LadderID: {Priority: htb(0)}, LadderID + 15: {Priority: htb(7)},
			ssh.ID: {Priority: htb(7), Serial: ssh.Serial, Limited: true}, batch.ID: {Priority: htb(2), Serial: batch.Serial}, set.ID: {Priority: htb(5), Serial: set.Serial},
			held.ID: {Priority: Keep, Serial: held.Serial, Limited: true}, below.ID: {Priority: Keep, Serial: below.Serial, Limited: true}, gets.ID: {Priority: Keep, Serial: gets.Serial, Answers: true},
		},
		"eth1": {
			Unclaimed: {Priority: Keep}, Unclassified: {Priority: Keep}, LadderID: {Priority: 0}, LadderID + 15: {Priority: 15},
			ssh.ID: {Priority: 15, Serial: ssh.Serial, Limited: true}, batch.ID: {Priority: 2, Serial: batch.Serial}, set.ID: {Priority: 11, Serial: set.Serial},
			held.ID: {Priority: Keep, Serial: held.Serial, Limited: true}, below.ID: {Priority: Keep, Serial: below.Serial, Limited: true}, gets.ID: {Priority: Keep, Serial: gets.Serial, Answers: true},
		},
	} {
		got := w.Links[link].Rules
		for id, p := range want {
			if got.Contracts[id] != p {
				t.Errorf("%s: contract %d means %+v, want %+v", link, id, got.Contracts[id], p)
			}
		}
		if len(got.Contracts) != int(FirstID)+6 || got.L2 != 14 {
			t.Errorf("%s: %d contracts, link layer of %d bytes", link, len(got.Contracts), got.L2)
		}
	}
	// In whole bytes a second, as the kernel holds it.
	if diff := cmp.Diff(map[ContractID]Limit{ssh.ID: {Max: 20_000_000}, held.ID: {Max: 64_000}, below.ID: {Max: 70_000}}, w.Rules.Limits); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[ContractID]Limit{held.ID: {Max: 64_008}, gets.ID: {Max: 80_000, Answers: true, Class: Queue{}.WrittenShare(0)}}, w.Rules.Arriving); diff != "" || !w.Receives {
		t.Errorf("what sockets receive is held: %v %s", w.Receives, diff)
	}
	if _, ok := w.Contracts["music"]; ok {
		t.Error("a net_prio workload has a contract of BPF's")
	}
	if diff := cmp.Diff(map[string]Group{"music": {Default: 3}}, w.Groups); diff != "" {
		t.Error(diff)
	}
}

func TestWantedLimits(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {egress: {max: 900.000007Mbit, pps: 70000}}, eth1: {ingress: {max: 64.009Kbit}}, eth2: {ingress: {pps: 10}}}
workloads:
  both: {match: [{port: 80}], priority: 3, egress: {max: 50Mbit, pps: 4000, links: {eth1: {max: 64.003Kbit}, eth2: {max: 10Mbit, pps: 900}}}}
  here: {match: [{port: 443}], egress: {links: {eth0: {max: 1Mbit}, eth1: {pps: 80}}}}
`)
	w := wanted(t, p, hostOf(p), IDs{})
	both, here := w.Contracts["both"], w.Contracts["here"]
	for link, want := range map[string]struct {
		egress, ingress, both, here Limit
	}{
		"eth0": {egress: Limit{Max: 900_000_000, PPS: 70_000}, here: Limit{Max: 1_000_000}},
		"eth1": {ingress: Limit{Max: 64_008}, both: Limit{Max: 64_000}, here: Limit{PPS: 80}},
		"eth2": {ingress: Limit{PPS: 10}, both: Limit{Max: 10_000_000, PPS: 900}},
	} {
		l := w.Links[link]
		if l.Rules.Egress != want.egress || l.Rules.Ingress != want.ingress || l.Ingress != (want.ingress != Limit{}) {
			t.Errorf("%s: egress %v, ingress %v, program %v", link, l.Rules.Egress, l.Rules.Ingress, l.Ingress)
		}
		for id, promise := range map[ContractID]Promise{
			both.ID: {Priority: 3, Serial: both.Serial, Limited: true, Here: want.both}, here.ID: {Priority: Keep, Serial: here.Serial, Here: want.here}, Unclaimed: {Priority: Keep},
		} {
			if got := l.Rules.Contracts[id]; got != promise {
				t.Errorf("%s: contract %d means %+v, want %+v", link, id, got, promise)
			}
		}
	}
	if diff := cmp.Diff(map[ContractID]Limit{both.ID: {Max: 50_000_000, PPS: 4000}}, w.Rules.Limits); diff != "" {
		t.Error(diff)
	}
	if w.Receives || len(w.Rules.Arriving) > 0 {
		t.Errorf("what sockets receive is held: %v %v", w.Receives, w.Rules.Arriving)
	}
	if together, here := w.CountLimits(); together != 2 || here != 9 {
		t.Errorf("%d limits of all links together, %d of one", together, here)
	}
}

// The ladder is asked wherever a queue of ours may look at what is written.
func TestWantedWithoutQueue(t *testing.T) {
	p := parsed(t, "version: 1\nlinks: {eth0: {scheduler: none}, eth1: {scheduler: prio}, eth2: {rate: 1Gbit}}\n")
	w := wanted(t, p, hostOf(p), IDs{})
	for link, want := range map[string]bool{"eth0": true, "eth1": false, "eth2": false} {
		if got := w.Links[link].Rules.NoQueue; got != want {
			t.Errorf("%s has no queue: %v, want %v", link, got, want)
		}
	}
}

// What sockets may receive needs no link, and is no limit of one.
func TestWantedIngressAlone(t *testing.T) {
	p := parsed(t, "version: 1\nworkloads: {w: {match: [{user: bob}], ingress: {max: 20Mbit}}}\n")
	w := wanted(t, p, hostOf(p), IDs{})
	if diff := cmp.Diff(map[ContractID]Limit{w.Contracts["w"].ID: {Max: 20_000_000}}, w.Rules.Arriving); diff != "" || !w.Receives {
		t.Errorf("what sockets receive is held: %v %s", w.Receives, diff)
	}
	if together, here := w.CountLimits(); together != 0 || here != 0 || len(w.Links) != 0 || len(w.Rules.Users) != 1 {
		t.Errorf("%d limits of all links together, %d of one; %+v", together, here, w.State)
	}
}

// A limit beside the policy is compared as a workload's is.
func TestExplicitLimitDiffers(t *testing.T) {
	p := parsed(t, limited20)
	held := func(max policy.Rate) *Want {
		w, errs := Wanted(p, hostOf(p), IDs{}, []Explicit{
			{"pid 8", policy.Contract{Priority: policy.Priority{Default: policy.Unset}, Egress: policy.Egress{Limit: policy.Limit{Max: max}}}},
		})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return w
	}
	for _, c := range []struct {
		have, want policy.Rate
		differs    string
	}{
		{1e6, 1e6, ""},
		{0, 0, ""},
		{2e6, 1e6, "~ workload pid 8: egress at most 2Mbit -> at most 1Mbit"},
		{0, 1e6, "~ workload pid 8: egress not limited -> at most 1Mbit"},
		{1e6, 0, "~ workload pid 8: egress at most 1Mbit -> not limited"},
	} {
		if got := lines(Diff(held(c.have).State, held(c.want))); strings.TrimSpace(got) != c.differs {
			t.Errorf("%v -> %v: got %q, want %q", c.have, c.want, got, c.differs)
		}
	}
}

func TestWantedPIDsAndUnfollowed(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  a: {match: [{pid: 7}, {cgroup: /x/*/y}, {unit: "web-*.service"}, {unit: b.service}], priority: 3}
`)
	w := wanted(t, p, hostOf(p), IDs{})
	if diff := cmp.Diff(map[uint32]string{7: "a"}, w.PIDs); diff != "" {
		t.Error(diff)
	}
	var left []string
	for _, s := range w.Unfollowed {
		left = append(left, s.String())
	}
	if diff := cmp.Diff([]string{"cgroup: /x/*/y", "unit: web-*.service"}, left); diff != "" {
		t.Error(diff)
	}
}

// TestWantedSame claims one thing by two names.
func TestWantedSame(t *testing.T) {
	p := parsed(t, `version: 1
links: {eth0: {}}
workloads:
  a: {match: [{user: alice}, {exe: /bin/x}, {user: 1}], priority: 3}
  b: {match: [{user: 1000}, {exe: /bin/link-to-x}], priority: 4}
  c: {match: [{user: one}], priority: 3}
`)
	f := hostOf(p)
	f.Users = map[string]uint32{"alice": 1000, "one": 1, "1000": 1000, "1": 1}
	f.Exes = map[string]ExeID{"/bin/x": {1, 2}, "/bin/link-to-x": {1, 2}}
	_, errs := Wanted(p, f, IDs{}, nil)
	want := `5:22: two workloads claim the same user: user: 1000 is user: alice | leave one of the two out
5:35: two workloads claim the same file: exe: /bin/link-to-x is exe: /bin/x | leave one of the two out
6:22: two workloads claim the same user: user: one is user: 1 | leave one of the two out`
	if got := findings(errs); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	delete(f.Users, "1000")
	p.Workloads = p.Workloads[1:2]
	if w := wanted(t, p, f, IDs{}); w.Rules.Users[1000] == 0 || len(w.Rules.Users) != 1 {
		t.Errorf("a number that nobody looked up: %v", w.Rules.Users)
	}
}

// TestExamples plans every example policy on a host that has what it names.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := parsed(t, string(text))
			w := wanted(t, p, hostOf(p), IDs{})
			if d := Diff(State{}, w); len(d) < len(p.Links)+len(p.Workloads) {
				t.Errorf("%d differences from nothing:\n%s", len(d), lines(d))
			}
			if d := Diff(w.State, wanted(t, p, hostOf(p), w.IDs)); len(d) > 0 {
				t.Errorf("planned again:\n%s", lines(d))
			}
		})
	}
}

// crowd is a policy of n workloads, a mix of all kinds.
func crowd(n int) *policy.Policy {
	var b strings.Builder
	b.WriteString("version: 1\nlinks: {eth0: {rate: 1Gbit}, eth1: {}}\nworkloads:\n")
	for i := range n {
		match := [...]string{
			fmt.Sprintf("cgroup: /batch/w%d/**", i), fmt.Sprintf("user: %d", i), fmt.Sprintf("unit: w%d.service", i),
			fmt.Sprintf("cidr: 10.%d.%d.0/24", i>>8, i&255), fmt.Sprintf("port: %d, protocol: tcp", 1000+i),
		}[i%5]
		fmt.Fprintf(&b, "  w%d: {match: [{%s}], priority: {eth0: %d, default: 4}}\n", i, match, i%16)
	}
	p, err := policy.Parse("crowd.yaml", []byte(b.String()))
	if err != nil {
		panic(err)
	}
	return p
}

// BenchmarkNoOp is the pure part of an apply that changes nothing.
func BenchmarkNoOp(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("workloads=%d", n), func(b *testing.B) {
			p := crowd(n)
			f := hostOf(p)
			have := wanted(b, p, f, IDs{})
			for b.Loop() {
				w, _ := Wanted(p, f, have.IDs, nil)
				if d := Diff(have.State, w); len(d) > 0 {
					b.Fatal(d)
				}
			}
		})
	}
}
