package tc

import (
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

func TestReadRootsOfOthers(t *testing.T) {
	link := newLink(t, 2)
	for _, test := range []struct {
		args string
		want plan.Qdisc
	}{
		{"", plan.Qdisc{Kind: "noqueue", Default: true}},
		{"qdisc add dev LINK root handle 5: pfifo limit 7", plan.Qdisc{Kind: "pfifo", Handle: 0x50000}},
		{"qdisc replace dev LINK root handle 6: htb", plan.Qdisc{Kind: "htb", Handle: 0x60000}},
		{"qdisc del dev LINK root", plan.Qdisc{Kind: "noqueue", Default: true}},
		{"qdisc add dev LINK clsact", plan.Qdisc{Kind: "noqueue", Default: true}},
	} {
		if test.args != "" {
			tc(t, strings.ReplaceAll(test.args, "LINK", link.Name))
		}
		s, err := Read(link.Index)
		if err != nil || s.Root != test.want || !s.Queue.Equal(plan.Queue{Scheduler: policy.None}) || s.Err() != nil {
			t.Errorf("%s: %+v, %v, want %+v", test.args, s, err, test.want)
		}
	}
}

// TestDrift changes one thing by tc; Read has to name it, and Apply to mend it.
func TestDrift(t *testing.T) {
	const (
		filter = "filter add dev LINK parent 7e1f: protocol ip prio 1 u32 match u32 0 0 "
		class  = "class change dev LINK parent 7e1f:1 classid 7e1f:12 htb "
	)
	for _, test := range []struct{ queue, args, want string }{
		{"htb 100M", "qdisc del dev LINK parent 7e1f:12 handle 7e32:", "bfifo qdisc 7e32: at 7e1f:12 is missing"},
		{"htb 100M", "qdisc change dev LINK parent 7e1f:12 handle 7e32: bfifo limit 9999", "bfifo qdisc 7e32: at 7e1f:12: limit is 9999b, not 250000b"},
		{"htb 100M", "qdisc replace dev LINK parent 7e1f:12 handle 9: pfifo limit 9", "pfifo qdisc 9: at 7e1f:12 is not Weir's"},
		{"htb 100M", class + "rate 1kbit ceil 50mbit burst 1518 quantum 69376 prio 1", "htb class 7e1f:12 at 7e1f:1: ceil is 50Mbit, not 100Mbit"},
		{"htb 100M", class + "rate 9mbit ceil 100mbit quantum 69376 prio 1", "rate is 9Mbit, not 1Kbit"},
		{"htb 100M", class + "rate 1kbit ceil 100mbit quantum 69376 prio 0", "prio is 0, not 1"},
		{"htb 100M", class + "rate 1kbit ceil 100mbit quantum 70000 prio 1", "quantum is "},
		{"htb 100M", "class change dev LINK parent root classid 7e1f:1 htb rate 99mbit ceil 99mbit", "ceil is 100Mbit, not 99Mbit"},
		{"htb 100M", "class add dev LINK parent 7e1f:1 classid 7e1f:99 htb rate 1mbit", "htb class 7e1f:99 at 7e1f:1 is not Weir's"},
		{"htb 100M", filter + "flowid 7e1f:10", "filters are attached to 7e1f:"},
		{"htb buckets", "qdisc del dev LINK parent 7e1f:407 handle 7e67:", "bfifo qdisc 7e67: at 7e1f:407 is missing"},
		{"htb buckets", "class add dev LINK parent 7e1f:1 classid 7e1f:18 htb rate 1mbit", "htb class 7e1f:18 at 7e1f:1 is not Weir's"},
		{"htb buckets", "class change dev LINK parent 7e1f:1 classid 7e1f:204 htb rate 9mbit ceil 100mbit quantum 81923 prio 2", "rate is 9Mbit, not 120bit"},
		{"htb two buckets", "class add dev LINK parent 7e1f:1 classid 7e1f:103 htb rate 1mbit", "htb class 7e1f:103 at 7e1f:1: rate is 1Mbit, not 8bit"},
		{"htb shares", "qdisc del dev LINK parent 7e1f:2010 handle 5008:", "bfifo qdisc 5008: at 7e1f:2010 is missing"},
		{"htb shares", "class del dev LINK classid 7e1f:2010", "htb class 7e1f:2010 at 7e1f:3001 is missing"},
		{"htb shares", "class change dev LINK parent 7e1f:3000 classid 7e1f:2000 htb rate 9mbit ceil 100mbit quantum 65551 prio 3", "rate is 9Mbit, not 8bit"},
		{"htb shares", "class change dev LINK parent 7e1f:1 classid 7e1f:3000 htb rate 40mbit ceil 100mbit", "htb class 7e1f:3000 at 7e1f:1: burst is 1600b, not 26214b (81920 ticks)"},
		{"htb shares", "class change dev LINK parent 7e1f:1 classid 7e1f:3000 htb rate 2kbit ceil 100mbit", "htb class 7e1f:3000 at 7e1f:1: rate is 2Kbit, not 1Kbit"},
		{"htb limits", "class change dev LINK parent 7e1f:1 classid 7e1f:3000 htb rate 1kbit ceil 20mbit", "htb class 7e1f:3000 at 7e1f:1: burst is 1600b, not 1518b"},
		{"htb limits", "class change dev LINK parent 7e1f:1 classid 7e1f:3000 htb rate 5kbit ceil 10mbit", "htb class 7e1f:3000 at 7e1f:1: rate is 5Kbit, not 1Kbit"},
		{"htb limits", "qdisc change dev LINK parent 7e1f:2000 handle 5000: bfifo limit 250000b", "bfifo qdisc 5000: at 7e1f:2000: limit is 250000b, not 81920b"},
		{"htb shares", "class add dev LINK parent 7e1f:3000 classid 7e1f:99 htb rate 1mbit", "htb class 7e1f:99 at 7e1f:3000 is not Weir's"},
		{"htb 100M", "class add dev LINK parent 7e1f:1 classid 7e1f:3001 htb rate 1mbit", "htb class 7e1f:2010 at 7e1f:3001 is missing"},
		{"htb 100M", "class add dev LINK parent 7e1f:1 classid 7e1f:2008 htb rate 1mbit", "htb class 7e1f:2008 at 7e1f:1 is not Weir's"},
		{"htb 100M", "class add dev LINK parent 7e1f:1 classid 7e1f:2010 htb rate 8bit", "htb class 7e1f:3001 at 7e1f:1 is missing"},
		{"htb 100M", "class add dev LINK parent 7e1f:1 classid 7e1f:2011 htb rate 8bit", "htb class 7e1f:2011 at 7e1f:1 is not Weir's"},
		{"htb share buckets", "class del dev LINK classid 7e1f:2017", "htb class 7e1f:2017 at 7e1f:3001 is missing"},
		{"prio", "qdisc del dev LINK parent 7e1f:2 handle 7e32:", "bfifo qdisc 7e32: at 7e1f:2 is missing"},
		{"prio", "qdisc change dev LINK root handle 7e1f: prio bands 5 priomap 3 3 3 3 2 2 2 2 1 1 1 1 0 0 0 0", "bfifo qdisc 7e33: at 7e1f:2 is missing"},
		{"prio 2 shaped", "qdisc del dev LINK parent 7e1f:1 handle 7e20:", "htb qdisc 7e1f: at the root has no classes of Weir's"},
		{"ets", "qdisc change dev LINK root handle 7e1f: ets bands 4 strict 2 quanta 9000 1500", "strict is 2, not 4"},
	} {
		t.Run(test.args, func(t *testing.T) {
			q := caseNamed(t, test.queue)
			if strings.HasPrefix(test.args, "filter") {
				testutil.Needs(t, "u32 classifier")
			}
			link := newLink(t, 4)
			apply(t, link, q)
			tc(t, strings.ReplaceAll(test.args, "LINK", link.Name))
			s, err := Read(link.Index)
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(s.Drift, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("drift is told as:\n%s\nwithout %q", all, test.want)
			}
			apply(t, link, q)
			holds(t, link, q)
		})
	}
}

// TestForeignMap: another priomap is no damage, but another queue.
func TestForeignMap(t *testing.T) {
	q := caseNamed(t, "prio")
	link := newLink(t, 4)
	apply(t, link, q)
	tc(t, "qdisc change dev "+link.Name+" root handle 7e1f: prio bands 4 priomap 0 3 3 3 2 2 2 2 1 1 1 1 0 0 0 0")
	q.Map[0] = 3
	holds(t, link, q)
}

// caseNamed is a case of queueCases, whose features it needs.
func caseNamed(t *testing.T, name string) plan.Queue {
	t.Helper()
	for _, c := range queueCases() {
		if c.name == name {
			testutil.Needs(t, c.needs...)
			return c.queue
		}
	}
	t.Fatalf("no case %q", name)
	return plan.Queue{}
}
