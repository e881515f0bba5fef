package tc

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// roots are foreign queueings: how tc makes them, and what that takes.
var roots = []struct {
	name     string
	commands []string
	needs    []string
}{
	{"kernel's own", nil, nil},
	{"pfifo", []string{"qdisc add dev LINK root handle 5: pfifo limit 77"}, nil},
	{"bfifo", []string{"qdisc add dev LINK root bfifo limit 777777"}, nil},
	{"noqueue", []string{"qdisc add dev LINK root handle 5: noqueue"}, nil},
	{"pfifo_fast", []string{"qdisc add dev LINK root handle 5: pfifo_fast"}, []string{"pfifo_fast qdisc"}},
	{"pfifo_head_drop", []string{"qdisc add dev LINK root handle 5: pfifo_head_drop limit 77"}, []string{"pfifo qdisc"}},
	{"a handle of ours", []string{"qdisc add dev LINK root handle 7e31: bfifo limit 777777"}, nil},
	{"our root's handle below", []string{
		"qdisc add dev LINK root handle 1: htb default 2",
		"class add dev LINK parent 1: classid 1:2 htb rate 100mbit",
		"qdisc add dev LINK parent 1:2 handle 7e1f: pfifo limit 7",
	}, nil},
	{"tbf", []string{"qdisc add dev LINK root handle 5: tbf rate 77mbit burst 77kb latency 20ms"}, nil},
	{"tbf peak", []string{"qdisc add dev LINK root handle 5: tbf rate 7mbit burst 77kb limit 99kb peakrate 77mbit minburst 1540 mpu 64 overhead 14"}, nil},
	{"tbf 40G", []string{"qdisc add dev LINK root handle 5: tbf rate 40gbit burst 7mb limit 9mb"}, nil},
	{"tbf over pfifo", []string{
		"qdisc add dev LINK root handle 5: tbf rate 77mbit burst 77kb latency 20ms",
		"qdisc add dev LINK parent 5:1 handle 6: pfifo limit 7",
	}, nil},
	{"htb", []string{
		"qdisc add dev LINK root handle 1: htb default 20 r2q 7 direct_qlen 77",
		"class add dev LINK parent 1: classid 1:99 htb rate 100mbit burst 15k",
		"class add dev LINK parent 1:99 classid 1:2 htb rate 40gbit ceil 60gbit prio 3 quantum 5000",
		"class add dev LINK parent 1:99 classid 1:10 htb rate 10mbit ceil 100mbit prio 1 overhead 14 mpu 64",
		"class add dev LINK parent 1:10 classid 1:20 htb rate 5mbit ceil 50mbit prio 7",
		"qdisc add dev LINK parent 1:20 handle 20: pfifo limit 20",
		"qdisc add dev LINK parent 1:2 handle 8: htb default 1",
		"class add dev LINK parent 8: classid 8:1 htb rate 1mbit",
		"qdisc add dev LINK parent 8:1 handle 9: bfifo limit 99999",
	}, nil},
	{"prio", []string{
		"qdisc add dev LINK root handle 1: prio bands 4 priomap 3 2 1 0 3 2 1 0 3 2 1 0 3 2 1 0",
		"qdisc add dev LINK parent 1:2 handle 12: bfifo limit 12345",
		"qdisc add dev LINK parent 1:3 handle 13: tbf rate 1mbit burst 10kb latency 50ms",
	}, []string{"prio qdisc"}},
	{"ets", []string{"qdisc add dev LINK root handle 1: ets bands 5 strict 2 quanta 3000 2000 1000 priomap 4 3 2 1 0"}, []string{"ets qdisc"}},
	{"fq_codel", []string{"qdisc add dev LINK root handle 1: fq_codel limit 777 flows 77 target 7ms interval 77ms quantum 777 ce_threshold 3ms noecn memory_limit 7mb drop_batch 7"}, []string{"fq_codel qdisc"}},
	{"fq_codel plain", []string{"qdisc add dev LINK root handle 1: fq_codel"}, []string{"fq_codel qdisc"}},
	{"fq", []string{"qdisc add dev LINK root handle 1: fq limit 777 flow_limit 77 quantum 7777 initial_quantum 77777 maxrate 7mbit buckets 256 orphan_mask 1023 timer_slack 7us ce_threshold 7ms horizon 7s refill_delay 7ms"}, []string{"fq qdisc"}},
	{"sfq", []string{"qdisc add dev LINK root handle 1: sfq limit 77 perturb 7 quantum 7777 depth 77 divisor 256"}, []string{"sfq qdisc"}},
	{"sfq red", []string{"qdisc add dev LINK root handle 1: sfq limit 3000 flows 512 depth 500 headdrop redflowlimit 100000 min 8000 max 60000 probability 0.20 ecn"}, []string{"sfq qdisc"}},
	{"cake", []string{"qdisc add dev LINK root handle 1: cake bandwidth 7mbit diffserv4 dual-srchost nat wash ack-filter overhead 44 mpu 84 rtt 50ms memlimit 7mb fwmark 0xf"}, []string{"cake qdisc"}},
	{"cake plain", []string{"qdisc add dev LINK root handle 1: cake"}, []string{"cake qdisc"}},
	{"mq", []string{
		"qdisc add dev LINK root handle 1: mq",
		"qdisc add dev LINK parent 1:1 handle 11: pfifo limit 11",
		"qdisc add dev LINK parent 1:3 handle 13: fq_codel target 3ms",
	}, []string{"mq qdisc", "fq_codel qdisc"}},
	{"mqprio", []string{
		"qdisc add dev LINK root handle 1: mqprio num_tc 2 map 0 1 0 1 0 1 queues 3@0 1@3 hw 0",
		"qdisc add dev LINK parent 1:4 handle 14: pfifo limit 14",
	}, []string{"mqprio qdisc"}},
}

func buildRoot(t *testing.T, link testutil.End, commands []string) {
	t.Helper()
	for _, c := range commands {
		tc(t, strings.ReplaceAll(c, "LINK", link.Name))
	}
}

// TestSaveRestore: saved, replaced by ours, put back: tc sees no difference, and
// neither does a second snapshot.
func TestSaveRestore(t *testing.T) {
	for _, root := range roots {
		t.Run(root.name, func(t *testing.T) {
			testutil.Needs(t, root.needs...)
			link := newLink(t, 4)
			buildRoot(t, link, root.commands)
			before := shape(t, link)
			saved := saveJSON(t, link)
			for _, ours := range present(t) {
				exclusive := strings.HasPrefix(root.name, "mq") && ours.name == "mqprio 4"
				if ours.name != "htb 100M" && !exclusive {
					continue
				}
				if err := Apply(link.Index, ours.queue, Options{TXQueues: 4, Adopt: true}); err != nil {
					t.Fatal(err)
				}
				holds(t, link, ours.queue)
				for range 2 {
					if err := Restore(link.Index, saved); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(before, shape(t, link)); diff != "" {
					t.Errorf("over %s:\n%s", ours.name, diff)
				}
				if diff := cmp.Diff(saved, saveJSON(t, link)); diff != "" {
					t.Errorf("over %s, saved again:\n%s", ours.name, diff)
				}
			}
		})
	}
}

// saveJSON is Save with the snapshot written down in between.
func saveJSON(t *testing.T, link testutil.End) Snapshot {
	t.Helper()
	s, err := Save(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Snapshot
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// TestRestoreCutShort ends a restore after each of its ops; the next finishes.
func TestRestoreCutShort(t *testing.T) {
	link := newLink(t, 4)
	for _, root := range roots {
		if root.name == "htb" {
			buildRoot(t, link, root.commands)
		}
	}
	before, saved := shape(t, link), saveJSON(t, link)
	for cut := 0; ; cut++ {
		if err := Apply(link.Index, queueCases()[2].queue, Options{Adopt: true}); err != nil {
			t.Fatal(err)
		}
		ops, err := restoring(link.Index, saved)
		if err != nil {
			t.Fatal(err)
		}
		if cut > len(ops) {
			break
		}
		if err := runAll(ops[:cut]); err != nil {
			t.Fatal(err)
		}
		if err := Restore(link.Index, saved); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, shape(t, link)); diff != "" {
			t.Fatalf("after %d of %d ops:\n%s", cut, len(ops), diff)
		}
	}
}

func TestRestoreLeavesThird(t *testing.T) {
	link := newLink(t, 1)
	tc(t, "qdisc add dev "+link.Name+" root handle 5: pfifo limit 77")
	saved := saveJSON(t, link)
	tc(t, "qdisc replace dev "+link.Name+" root handle 6: bfifo limit 77777")
	if err := Restore(link.Index, saved); !errors.Is(err, ErrForeign) {
		t.Errorf("restore over a third root: %v", err)
	}
}

func TestSaveRefuses(t *testing.T) {
	for _, test := range []struct {
		commands, needs []string
		want            string
	}{
		{[]string{
			"qdisc add dev LINK root handle 1: htb",
			"filter add dev LINK parent 1: protocol ip prio 1 u32 match u32 0 0 flowid 1:1",
		}, []string{"u32 classifier"}, "htb qdisc 1: at the root has filters attached"},
		{[]string{
			"qdisc add dev LINK root handle 1: htb",
			"class add dev LINK parent 1: classid 1:1 htb rate 1mbit",
			"filter add dev LINK parent 1:1 protocol ip prio 1 u32 match u32 0 0 flowid 1:1",
		}, []string{"u32 classifier"}, "htb class 1:1 at the root has filters attached"},
		{[]string{"qdisc add dev LINK root handle 1: stab linklayer atm overhead 10 htb"}, nil, "has a size table"},
		{[]string{"qdisc add dev LINK root handle 1: estimator 1sec 8sec pfifo"}, nil, "has a rate estimator"},
		{[]string{
			"qdisc add dev LINK root handle 1: htb",
			"class add dev LINK parent 1: classid 1:1 estimator 1sec 8sec htb rate 1mbit",
		}, nil, "htb class 1:1 at the root has a rate estimator"},
		{[]string{"qdisc add dev LINK root handle 1: netem delay 1ms"}, []string{"netem qdisc"}, "netem qdisc 1: at the root can not be put back"},
		{[]string{"qdisc add dev LINK root handle 7e1f: htb"}, nil, "is Weir's own"},
	} {
		t.Run(test.want, func(t *testing.T) {
			testutil.Needs(t, test.needs...)
			link := newLink(t, 1)
			buildRoot(t, link, test.commands)
			if _, err := Save(link.Index); !errors.Is(err, ErrNoReturn) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("save: %v, want %q", err, test.want)
			}
		})
	}
}

// TestManyQueues: on a device with several TX queues the kernel's own root is an
// mq with a qdisc for each, and is again once ours is gone.
func TestManyQueues(t *testing.T) {
	testutil.Needs(t, "ifb link", "mq qdisc")
	testutil.Netns(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.NumTxQueues, attrs.Flags = "many", 4, net.FlagUp
	if err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: attrs}); err != nil {
		t.Fatal(err)
	}
	device, err := netlink.LinkByName(attrs.Name)
	if err != nil {
		t.Fatal(err)
	}
	link := testutil.End{Name: attrs.Name, Index: device.Attrs().Index}
	before := shape(t, link)
	if s, err := Read(link.Index); err != nil || s.Root != (plan.Qdisc{Kind: "mq", Default: true}) {
		t.Fatalf("the kernel's own root is %+v, %v", s.Root, err)
	}
	saved := saveJSON(t, link)
	for _, c := range present(t) {
		apply(t, link, c.queue)
		holds(t, link, c.queue)
		if err := Restore(link.Index, saved); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, shape(t, link)); diff != "" {
			t.Errorf("after %s:\n%s", c.name, diff)
		}
	}
}
