package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

const sharing = `version: 1
links: {eth0: {rate: 100Mbit}, eth1: {scheduler: prio}}
workloads:
  video: {match: [{port: 1}], egress: {links: {eth0: {min: 50%}}}}
  plain: {match: [{port: 4}], priority: 9}
  web: {match: [{port: 2}], egress: {max: 60Mbit, links: {eth0: {min: 30Mbit}}}, priority: 8}
  calls: {match: [{port: 3}], egress: {links: {eth0: {min: 20Mbit}}}, priority: {eth0: 15}}
`

// TestShares: each workload with a share has a class of its own on the link, and none
// on others; shares stay with their workloads when others come and go.
func TestShares(t *testing.T) {
	p := parsed(t, sharing)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	q := w.Links["eth0"].Queue
	want := []Share{{50_000_000, 0, 0}, {30_000_000, 4, 0}, {20_000_000, 7, 0}}
	if q.Scheduler != policy.HTB || !slices.Equal(q.Shares, want) || w.Links["eth1"].Queue.Shares != nil {
		t.Fatalf("%+v, and eth1 %+v", q, w.Links["eth1"].Queue)
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	if why := w.Rungs["eth0"].Why; !strings.Contains(why, "prio promises nobody a part of the line") {
		t.Error(why)
	}
	written := func(w *Want, link, name string) string {
		return w.Links[link].Queue.Describe(w.Links[link].Rules.Contracts[w.Contracts[name].ID].Priority)
	}
	for name, text := range map[string]string{
		"video": "at least 50Mbit, beyond that class 0", "web": "at least 30Mbit, beyond that class 4",
		"calls": "at least 20Mbit, beyond that class 7", "plain": "class 4",
	} {
		if got := written(w, "eth0", name); got != text {
			t.Errorf("%s: %s, want %s", name, got, text)
		}
	}
	if got := written(w, "eth1", "web") + ", " + written(w, "eth1", "video"); got != "priority 8, as it comes" {
		t.Error(got)
	}
	if got := w.Links["eth0"].Entitled(); !slices.Equal(got, []ContractID{w.Contracts["video"].ID, w.Contracts["web"].ID, w.Contracts["calls"].ID}) {
		t.Error(got)
	}

	without := *p
	without.Workloads = slices.DeleteFunc(slices.Clone(p.Workloads), func(w policy.Workload) bool { return w.Name == "video" })
	fewer := wanted(t, &without, f, w.IDs)
	if diff := cmp.Diff(`~ link eth0: htb with 8 classes at 100Mbit, 100Mbit of it in 3 shares -> htb with 8 classes at 100Mbit, 50Mbit of it in 2 shares
- workload video: its packets are nobody's again
`, lines(Diff(w.State, fewer))); diff != "" {
		t.Error(diff)
	}
	again := wanted(t, p, f, fewer.IDs)
	if text := written(again, "eth0", "web") + "; " + written(again, "eth0", "video"); text != "at least 30Mbit, beyond that class 4; at least 50Mbit, beyond that class 0" {
		t.Error(text)
	}
}

// TestShareDiffers: what a share is changed to is a change of its workload and of its
// link.
func TestShareDiffers(t *testing.T) {
	p := parsed(t, sharing)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	for change, want := range map[[2]string]string{
		{"min: 20Mbit", "min: 10Mbit"}: `~ link eth0: htb with 8 classes at 100Mbit, 100Mbit of it in 3 shares -> htb with 8 classes at 100Mbit, 90Mbit of it in 3 shares
~ workload calls: eth0 at least 20Mbit, beyond that class 7 -> at least 10Mbit, beyond that class 7
`,
		{"{eth0: 15}", "{eth0: 0}"}: `~ link eth0: htb with 8 classes at 100Mbit, 100Mbit of it in 3 shares (leaves "fq_codel", buckets 1, map [0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7], shares [at least 50Mbit, beyond that class 0 at least 30Mbit, beyond that class 4 at least 20Mbit, beyond that class 7]) -> ` +
			`htb with 8 classes at 100Mbit, 100Mbit of it in 3 shares (leaves "fq_codel", buckets 1, map [0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7], shares [at least 50Mbit, beyond that class 0 at least 30Mbit, beyond that class 4 at least 20Mbit, beyond that class 0])
~ workload calls: eth0 at least 20Mbit, beyond that class 7 -> at least 20Mbit, beyond that class 0
`,
		{"egress: {links: {eth0: {min: 20Mbit}}}, ", ""}: `~ link eth0: htb with 8 classes at 100Mbit, 100Mbit of it in 3 shares -> htb with 8 classes at 100Mbit, 80Mbit of it in 2 shares
~ workload calls: eth0 at least 20Mbit, beyond that class 7 -> class 7
`,
	} {
		other := wanted(t, parsed(t, strings.Replace(sharing, change[0], change[1], 1)), f, w.IDs)
		if diff := cmp.Diff(want, lines(Diff(w.State, other))); diff != "" {
			t.Errorf("%s:\n%s", change[1], diff)
		}
	}
}

// TestSharesRefused: a link that can not be divided so is an error of the policy.
func TestSharesRefused(t *testing.T) {
	const head = "version: 1\nlinks: {eth0: {}}\nworkloads:\n  a: {match: [{port: 1}], egress: {min: 600Mbit}}\n"
	many := "version: 1\nlinks: {eth0: {rate: 1Gbit}}\nworkloads:\n"
	for i := range MaxShares + 1 {
		many += fmt.Sprintf("  w%d: {match: [{port: %d}], egress: {min: 8Kbit}}\n", i, i+1)
	}
	for name, c := range map[string]struct {
		text   string
		change func(*Facts)
		want   string
	}{
		"of more than the device has": {head + "  b: {match: [{port: 2}], egress: {min: 600Mbit}}\n", func(*Facts) {},
			"htb can not be divided so: workloads are promised 1.2Gbit in all, and it has 1Gbit"},
		"of a device of no known speed": {head, func(f *Facts) { f.Links["eth0"] = LinkFacts{Index: 1, TXQueues: 1} },
			"htb needs a rate, and the device reports no speed"},
		"without htb": {head, func(f *Facts) { f.Features.Qdiscs = with("prio", "fq", "fq bands").Qdiscs },
			"prio promises nobody a part of the line; kernel has no ets qdisc; kernel has no htb qdisc; fq promises nobody a part of the line"},
		"too many": {many, func(*Facts) {}, "257 workloads are promised a part of it, and htb has 256 for them"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parsed(t, c.text)
			f := hostOf(p)
			c.change(&f)
			errs := Check(p, f)
			if len(errs) != 1 || !strings.Contains(errs[0].Message, c.want) {
				t.Errorf("%v, want %s", errs, c.want)
			}
		})
	}
}

// TestJudgeShares: a share that gets less than is promised while its packets wait is
// broken, whatever was read back.
func TestJudgeShares(t *testing.T) {
	p := parsed(t, sharing)
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	owner := Owner{Contract: w.Contracts["web"].ID, Link: w.Links["eth0"].Index}
	const read = "read back: share 1 of htb with 8 classes at 100Mbit, 100Mbit of it in 3 shares"
	want := Judgement{Workload: "web", Link: "eth0", Promise: PromiseShare, Priority: policy.Unset, Min: 30_000_000, Traffic: Traffic{3, 180}}
	judges(t, p, want, map[string]judging{
		"nothing waits":      {nil, map[Owner]Served{owner: {}}, Kept, read + "; nothing of it waits"},
		"it gets its part":   {nil, map[Owner]Served{owner: {Waited: true, Got: 29_876_543}}, Kept, read + "; 29.9Mbit over 500ms, and more waits"},
		"it gets more":       {nil, map[Owner]Served{owner: {Waited: true, Got: 80e6}}, Kept, read + "; 80Mbit over 500ms, and more waits"},
		"within two packets": {nil, map[Owner]Served{owner: {Waited: true, Got: 27_302_848}}, Unprovable, read + "; 27.3Mbit over 500ms, and more waits: too few packets to tell"},
		"less":               {nil, map[Owner]Served{owner: {Waited: true, Got: 27_302_847}}, Broken, read + "; 27.3Mbit over 500ms, and more waits"},
		"nobody knows":       {nil, nil, Unprovable, read + "; what it gets could not be read"},
		"no class": {func(s *State) { drift(s, func(l *LinkState) { l.Queue.Shares = l.Queue.Shares[:1] }) }, nil, Broken,
			"htb with 8 classes at 100Mbit, 50Mbit of it in 1 share -> htb with 8 classes at 100Mbit, 100Mbit of it in 3 shares"},
	})
	if terms := want.Terms(); terms != "at least 30Mbit" {
		t.Error(terms)
	}
}

// A judging is what is there of a promise, and how that is judged.
type judging struct {
	have    func(*State) // nil: what is wanted
	served  map[Owner]Served
	verdict Verdict
	want    string
}

// judges checks how the promise of a workload on a link is judged in each case: want is
// that but for its verdict and the evidence.
func judges(t *testing.T, p *policy.Policy, want Judgement, cases map[string]judging) {
	t.Helper()
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	seen := map[string]map[ContractID]Traffic{want.Link: {w.Contracts[want.Workload].ID: want.Traffic}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			if c.have != nil {
				c.have(&have)
			}
			want.Verdict, want.Evidence = c.verdict, c.want
			all := Judge(p, w, Diff(have, w), Measured{Traffic: seen, Served: c.served})
			i := slices.IndexFunc(all, func(j Judgement) bool {
				return j.Workload == want.Workload && j.Link == want.Link && j.Promise == want.Promise
			})
			if i < 0 {
				t.Fatalf("%+v", all)
			}
			if diff := cmp.Diff(want, all[i]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestShareOfAnother: a workload that is written into somebody else's share is found,
// though both are promised the same, and what is written for a share that is gone
// counts as what htb makes of it.
func TestShareOfAnother(t *testing.T) {
	p := parsed(t, strings.Replace(strings.Replace(sharing, "min: 50%", "min: 20Mbit", 1), ", priority: {eth0: 15}", "", 1))
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	have := wanted(t, p, f, IDs{}).State
	l := have.Links["eth0"]
	calls, video := w.Contracts["calls"].ID, w.Contracts["video"].ID
	promise := l.Rules.Contracts[calls]
	promise.Priority = l.Rules.Contracts[video].Priority
	l.Rules.Contracts[calls] = promise
	const text = "~ workload calls: eth0 at least 20Mbit, beyond that class 0 -> at least 20Mbit, beyond that class 0\n"
	if got := lines(Diff(have, w)); got != text {
		t.Error(got)
	}
	gone := l.Queue
	gone.Shares = gone.Shares[:1]
	if class := gone.ClassOf(l.Queue.WrittenShare(2)); class != gone.Map[0] {
		t.Errorf("class %d", class)
	}
	if class := l.Queue.ClassOf(l.Queue.WrittenShare(2)); int(class) != l.Queue.Classes {
		t.Errorf("class %d", class)
	}
}

// TestShareNumbers: who comes does not get the number of who leaves in the same apply,
// while there are others.
func TestShareNumbers(t *testing.T) {
	before := IDs{Shares: map[string]map[string]int{"eth0": {"gone": 0, "web": 2}}}
	p := parsed(t, sharing)
	if got := before.shareNumbers(p, "eth0", nil); got["web"] != 2 || got["video"] != 1 || got["calls"] != 3 {
		t.Error(got)
	}
	for n := range MaxShares {
		before.Shares["eth0"]["gone"+strconv.Itoa(n)] = n
	}
	if got := before.shareNumbers(p, "eth0", nil); got["web"] != 2 || got["video"] != 0 || got["calls"] != 1 {
		t.Error(got)
	}
}

// TestShareMinor: every leaf and every inner class has a number of its own that leads
// back to it, and that no class of the queue has.
func TestShareMinor(t *testing.T) {
	taken := map[uint32]bool{0: true, 1: true}
	for _, buckets := range []int{1, MaxBuckets} {
		q := Queue{Classes: policy.Levels, Buckets: buckets}
		for c := range q.Classes {
			for b := range q.Leaves() {
				taken[q.ClassMinor(c, b)] = true
			}
		}
	}
	take := func(minor uint32) {
		if taken[minor] || minor > 0xffff {
			t.Errorf("%x is taken, or too large", minor)
		}
		taken[minor] = true
	}
	for n := range MaxShares {
		take(ShareInner(n))
		if got, ok := ShareOfInner(ShareInner(n)); !ok || got != n {
			t.Errorf("inner class of share %d: %d, %v", n, got, ok)
		}
		for b := range MaxBuckets {
			take(ShareMinor(n, b))
			if got, bucket, ok := ShareOfMinor(ShareMinor(n, b)); !ok || got != n || bucket != b {
				t.Errorf("leaf %d of share %d: %d of %d, %v", b, n, bucket, got, ok)
			}
		}
	}
	for minor := range uint32(1 << 16) {
		_, _, leaf := ShareOfMinor(minor)
		_, inner := ShareOfInner(minor)
		if (leaf || inner) && !taken[minor] || leaf && inner {
			t.Errorf("%x is taken for a part of a share", minor)
		}
	}
}

// TestWidened: what is about to go stays for a moment, at next to nothing, where the
// queue is not built anew.
func TestWidened(t *testing.T) {
	divided := func(shares ...Share) Queue {
		return Queue{Scheduler: policy.HTB, Rate: 1e8, Classes: 8, Leaf: LeafBFIFO, Buckets: 8, Map: SpreadOver(8), Shares: shares}
	}
	least := Share{Min: MinRate, Class: 3}
	other := divided(Share{Min: 1e6, Class: 3})
	other.Rate = 1e7
	slower := divided()
	slower.Rate = 1e7
	for name, c := range map[string]struct{ before, after, want Queue }{
		"none":             {divided(), divided(), divided()},
		"one comes":        {divided(), divided(Share{Min: 1e6, Class: 3}), divided(Share{Min: 1e6, Class: 3})},
		"one goes":         {divided(Share{Min: 1e6, Class: 3}), divided(), divided(least)},
		"the last goes":    {divided(Share{Min: 1e6, Class: 1}, Share{Min: 1e6, Class: 3}), divided(Share{Min: 1e6, Class: 1}), divided(Share{Min: 1e6, Class: 1}, least)},
		"the first goes":   {divided(Share{Min: 1e6, Class: 3}, Share{Min: 1e6, Class: 1}), divided(Share{}, Share{Min: 2e6, Class: 1}), divided(least, Share{Min: 2e6, Class: 1})},
		"another rate":     {other, divided(), divided(least)},
		"a limit goes":     {divided(Share{Max: 1e6, Class: 3}), divided(), divided(Share{Max: 1e6, Class: 3})},
		"both go":          {divided(Share{Min: 1e6, Max: 2e6}), divided(), divided(Share{Min: MinRate, Max: 2e6})},
		"a limit above it": {divided(Share{Max: 9e7}), slower, Queue{Scheduler: policy.HTB, Rate: 1e7, Classes: 8, Leaf: LeafBFIFO, Buckets: 8, Map: SpreadOver(8), Shares: []Share{{Max: 1e7}}}},
		"another queue":    {divided(Share{Min: 1e6, Class: 3}), Queue{Scheduler: policy.Prio, Classes: 16}, Queue{Scheduler: policy.Prio, Classes: 16}},
		"from another":     {Queue{Scheduler: policy.None}, divided(Share{Min: 1e6, Class: 3}), divided(Share{Min: 1e6, Class: 3})},
		"a hole stays one": {divided(Share{}, Share{Min: 1e6, Class: 3}), divided(Share{}, Share{Min: 1e6, Class: 3}), divided(Share{}, Share{Min: 1e6, Class: 3})},
	} {
		if got := c.after.Widened(c.before).Normal(); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got.Shares, c.want.Shares)
		}
	}
}
