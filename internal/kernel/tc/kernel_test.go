package tc

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// TestMain keeps a socket that wants timestamps for as long as the tests run: with
// the first and the last one of a host the kernel changes its own code, which an
// emulated CPU under traffic does not always survive.
func TestMain(m *testing.M) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "open a socket with timestamps:", err)
		os.Exit(1)
	}
	testutil.Leaks(m)
}

// newLink gives the test a veth end in a namespace of its own, which it enters.
func newLink(t testing.TB, queues int) testutil.End {
	t.Helper()
	ns := testutil.Netns(t)
	link, _ := testutil.Veth(t, ns, ns, testutil.VethOptions{Queues: queues, NoIP: true})
	return link
}

// tc runs the witness in the test's namespace.
func tc(t testing.TB, args string) string {
	t.Helper()
	testutil.Needs(t, "tc")
	return testutil.Output(t, "tc", strings.Fields(args)...)
}

// shape is what tc tells of the egress of a link, without the counters.
func shape(t testing.TB, link testutil.End) string {
	t.Helper()
	return testutil.Lasting(tc(t, "-d qdisc show dev "+link.Name) + tc(t, "-d class show dev "+link.Name))
}

func apply(t testing.TB, link testutil.End, q plan.Queue) {
	t.Helper()
	if err := Apply(link.Index, q, Options{TXQueues: 4}); err != nil {
		t.Fatalf("apply %+v: %v", q, err)
	}
}

// holds fails the test unless the link reads back as q, without drift.
func holds(t testing.TB, link testutil.End, q plan.Queue) {
	t.Helper()
	s, err := Read(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("read %+v: %v", q, err)
	}
	if !s.Queue.Equal(q.Normal()) {
		t.Errorf("read %+v\nwant %+v", s.Queue, q.Normal())
	}
}

// A queueCase is a queue with the features that it takes.
type queueCase struct {
	name  string
	queue plan.Queue
	needs []string
}

// queueCases has every scheduler, shaped and not, with every kind of leaf.
func queueCases() []queueCase {
	spread := plan.SpreadOver
	reversed := spread(4)
	for p := range reversed {
		reversed[p] = 3 - reversed[p]
	}
	three := spread(3)
	htb := func(rate policy.Rate, n int, leaf plan.Leaf) plan.Queue {
		return plan.Queue{Scheduler: policy.HTB, Rate: rate, Classes: n, Leaf: leaf, Map: spread(n)}
	}
	bands := func(s policy.Scheduler, rate policy.Rate, n int, leaf plan.Leaf) plan.Queue {
		return plan.Queue{Scheduler: s, Rate: rate, Classes: n, Leaf: leaf, Map: spread(n)}
	}
	const M, G = 1_000_000, 1_000_000_000
	buckets := func(q plan.Queue, n int) plan.Queue {
		q.Buckets = n
		return q
	}
	shares := func(q plan.Queue, all ...plan.Share) plan.Queue {
		q.Shares = all
		return q
	}
	share := func(min policy.Rate, class uint8) plan.Share { return plan.Share{Min: min, Class: class} }
	full := shares(htb(100*M, 4, plan.LeafBFIFO), share(20*M, 0), share(30*M, 3), share(50*M, 1))
	limits := shares(htb(100*M, 4, plan.LeafBFIFO), plan.Share{Max: 10 * M, Class: 2}, plan.Share{Min: 20 * M, Max: 30 * M, Class: 1}, plan.Share{Max: 100 * M})
	many := shares(htb(G, 4, plan.LeafBFIFO))
	for n := range plan.MaxShares {
		many.Shares = append(many.Shares, share(plan.MinRate+policy.Rate(n)*8, uint8(n%4)))
	}
	mixed := htb(100*M, 4, plan.LeafBFIFO)
	mixed.Map = reversed
	mixedPrio := bands(policy.Prio, 0, 4, plan.LeafBFIFO)
	mixedPrio.Map = reversed
	mixedBuckets := buckets(mixed, 8)
	return []queueCase{
		{"htb one class", htb(M, 1, plan.LeafBFIFO), nil},
		{"htb slow", htb(64_000, 8, plan.LeafBFIFO), nil},
		{"htb 100M", htb(100*M, 4, plan.LeafBFIFO), nil},
		{"htb reversed", mixed, nil},
		{"htb odd rate", htb(123_456_789, 3, plan.LeafBFIFO), nil},
		{"htb 40G", htb(40*G, 8, plan.LeafBFIFO), nil},
		{"htb 400G", htb(400*G, 2, plan.LeafBFIFO), nil},
		{"htb buckets", buckets(htb(100*M, 4, plan.LeafBFIFO), 8), nil},
		{"htb two buckets", buckets(htb(M, 8, plan.LeafBFIFO), 2), nil},
		{"htb buckets reversed", mixedBuckets, nil},
		{"htb fq_codel", htb(G, 4, plan.LeafFQCodel), []string{"fq_codel qdisc"}},
		{"htb fq_codel slow", htb(M, 4, plan.LeafFQCodel), []string{"fq_codel qdisc"}},
		{"htb shares", full, nil},
		{"htb other shares", shares(htb(100*M, 4, plan.LeafBFIFO), share(12_345_678, 2)), nil},
		{"htb share buckets", buckets(full, 8), nil},
		{"htb shares apart", shares(htb(100*M, 4, plan.LeafBFIFO), plan.Share{}, share(30*M, 2), plan.Share{}, share(M, 0), plan.Share{}), nil},
		{"htb share slow", shares(htb(64_000, 8, plan.LeafBFIFO), share(plan.MinRate, 7)), nil},
		{"htb share 400G", shares(htb(400*G, 2, plan.LeafBFIFO), share(399*G, 1)), nil},
		{"htb many shares", many, nil},
		{"htb share fq_codel", shares(htb(G, 4, plan.LeafFQCodel), share(500*M, 0), share(M, 2)), []string{"fq_codel qdisc"}},
		{"htb limits", limits, nil},
		{"htb other limits", shares(limits, plan.Share{Max: 50 * M, Class: 2}, plan.Share{Max: 30 * M}), nil},
		{"htb limit buckets", buckets(limits, 8), nil},
		{"htb limit slow", shares(htb(64_000, 8, plan.LeafBFIFO), plan.Share{Max: 64_000, Class: 7}), nil},
		{"htb limit 100G", shares(htb(400*G, 2, plan.LeafBFIFO), plan.Share{Max: 100 * G}, plan.Share{Max: 64_000}), nil},
		{"htb limit fq_codel", shares(htb(G, 4, plan.LeafFQCodel), plan.Share{Max: M, Class: 2}, plan.Share{Min: M, Max: 500 * M}), []string{"fq_codel qdisc"}},
		{"htb that weighs", waitingQueue(), nil},
		{"prio", bands(policy.Prio, 0, 4, plan.LeafBFIFO), []string{"prio qdisc"}},
		{"prio reversed", mixedPrio, []string{"prio qdisc"}},
		{"prio 16", bands(policy.Prio, 0, 16, plan.LeafBFIFO), []string{"prio qdisc"}},
		{"prio 2 shaped", bands(policy.Prio, 100*M, 2, plan.LeafBFIFO), []string{"prio qdisc"}},
		{"prio shaped fq_codel", bands(policy.Prio, 100*M, 4, plan.LeafFQCodel), []string{"prio qdisc", "fq_codel qdisc"}},
		{"ets", bands(policy.ETS, 0, 4, plan.LeafBFIFO), []string{"ets qdisc"}},
		{"ets one band", bands(policy.ETS, 0, 1, plan.LeafBFIFO), []string{"ets qdisc"}},
		{"ets shaped", bands(policy.ETS, 100*M, 16, plan.LeafBFIFO), []string{"ets qdisc"}},
		{"mqprio 4", bands(policy.MQPrio, 0, 4, plan.LeafDefault), []string{"mqprio qdisc"}},
		{"mqprio 3", bands(policy.MQPrio, 0, 3, plan.LeafDefault), []string{"mqprio qdisc"}},
		{"fq", plan.Queue{Scheduler: policy.FQ, Classes: 1}, []string{"fq qdisc"}},
		{"prio over fq", bands(policy.Prio, 0, 16, plan.LeafFQ), []string{"prio qdisc", "fq qdisc"}},
		{"ets over fq", bands(policy.ETS, 0, 4, plan.LeafFQ), []string{"ets qdisc", "fq qdisc"}},
		{"fq for times", plan.Queue{Scheduler: policy.FQ, Classes: 1, Leaf: plan.LeafFQ}, []string{"fq qdisc"}},
		{"fq banded for times", plan.Queue{Scheduler: policy.FQ, Classes: 3, Map: three, Leaf: plan.LeafFQ}, []string{"fq qdisc", "fq bands"}},
		{"fq banded", plan.Queue{Scheduler: policy.FQ, Classes: 3, Map: three}, []string{"fq qdisc", "fq bands"}},
	}
}

// present are the cases that this kernel can hold.
func present(t testing.TB) []queueCase {
	t.Helper()
	var out []queueCase
	for _, c := range queueCases() {
		absent := slices.ContainsFunc(c.needs, func(name string) bool {
			has, err := feature.Has(name)
			if err != nil {
				t.Fatal(err)
			}
			return !has
		})
		if !absent {
			out = append(out, c)
		}
	}
	if len(out) < 5 {
		t.Fatalf("only %d kinds of queue can be tried", len(out))
	}
	return out
}
