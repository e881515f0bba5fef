package tc

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

var detourNeeds = []string{"clsact qdisc", "u32 classifier", "mirred action", "ifb link"}

// detour sends what arrives by a link over a queue of 1 Mbit/s.
func detour(t *testing.T, link testutil.End) (index int, q plan.Queue) {
	t.Helper()
	q = plan.Queue{Scheduler: policy.HTB, Rate: 1e6, Classes: 1, Leaf: plan.LeafBFIFO}
	index, err := MakeDetour(link.Index, link.Name)
	if err == nil {
		err = Apply(index, q, Options{})
	}
	if err == nil {
		err = OpenDetour(link.Index)
	}
	if err != nil {
		t.Fatal(err)
	}
	return index, q
}

// detoured fails the test unless this is read.
func detoured(t *testing.T, link testutil.End, want plan.Detour) {
	t.Helper()
	got, err := ReadDetour(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got)\n%s", diff)
	}
}

// TestDetour sends what arrives over a queue, as tc and ip see it. What has passed the
// queue arrives once, with its header counted, and is not sent over it again.
func TestDetour(t *testing.T) {
	testutil.Needs(t, append(detourNeeds, "htb qdisc", "bfifo qdisc", "ip")...)
	link, from, to := crossing(t, Ingress)
	before := shape(t, link)
	index, q := detour(t, link)
	if again, _ := detour(t, link); again != index {
		t.Errorf("device %d became %d", index, again)
	}
	detoured(t, link, plan.Detour{Queue: q})
	shown := tc(t, fmt.Sprintf("filter show dev %s ingress", link.Name))
	if name := DetourName(link.Index); strings.Count(shown, "mirred") != 1 || !strings.Contains(shown, "Egress Redirect to device "+name) {
		t.Errorf("tc shows\n%s", shown)
	}
	if shown := testutil.Output(t, "ip", "-d", "link", "show", DetourName(link.Index)); !strings.Contains(shown, "what arrives by "+link.Name) ||
		!strings.Contains(shown, "addrgenmode none") {
		t.Errorf("ip shows\n%s", shown)
	}
	// 13 of 1,400 bytes take 150 ms, and a bfifo of 1 Mbit/s holds as many.
	const sent, payload, frame = 13, 1400, 1400 + 8 + 20 + 14
	begin := time.Now()
	for range sent {
		if _, err := from.WriteTo(make([]byte, payload), to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	_ = to.SetReadDeadline(begin.Add(5 * time.Second))
	for n := range sent {
		if _, err := to.Read(make([]byte, frame)); err != nil {
			t.Fatalf("after %d of %d: %v", n, sent, err)
		}
	}
	if took := time.Since(begin); took < (sent-4)*frame*8*time.Microsecond {
		t.Errorf("%d packets took %v", sent, took)
	}
	classes, err := Counters(index)
	if err != nil || len(classes) != 1 {
		t.Fatalf("%+v, %v", classes, err)
	}
	// The hosts themselves may have sent a small packet or two.
	c := classes[0]
	if other := int(c.Packets) - sent; other < 0 || other > 5 || int(c.Bytes) < sent*frame || int(c.Bytes) > sent*frame+other*100 || c.Drops != 0 {
		t.Errorf("%d frames of %d bytes are %+v", sent, frame, c)
	}
	for range 2 {
		if err := errors.Join(ClearRedirect(link.Index, false), RemoveDetour(link.Index)); err != nil {
			t.Fatal(err)
		}
		detoured(t, link, plan.Detour{})
	}
	if after := shape(t, link); after != before {
		t.Errorf("cleared:\n%swant:\n%s", after, before)
	}
}

// TestDetourDrift: what others do to each part is read.
func TestDetourDrift(t *testing.T) {
	testutil.Needs(t, append(detourNeeds, "htb qdisc", "bfifo qdisc", "ip")...)
	link, _ := wire(t, 1)
	_, q := detour(t, link)
	name := DetourName(link.Index)
	ip := func(args string) { testutil.Output(t, "ip", strings.Fields(args)...) }
	ingress := fmt.Sprintf("filter %%s dev %s ingress ", link.Name)
	for what, c := range map[string]struct {
		do   func()
		want plan.Detour
	}{
		"device":   {func() { ip("link del " + name) }, plan.Detour{Drift: []string{name + " is gone, so nothing arrives"}}},
		"down":     {func() { ip("link set " + name + " down") }, plan.Detour{Queue: q, Drift: []string{name + " is down"}}},
		"filter":   {func() { tc(t, fmt.Sprintf(ingress, "del")) }, plan.Detour{Queue: q, Drift: []string{"nothing is sent over " + name}}},
		"no queue": {func() { tc(t, "qdisc del dev "+name+" root") }, plan.Detour{Queue: plan.Queue{Scheduler: policy.None}, Drift: []string{name + " has no queue of Weir's"}}},
		"action": {func() {
			tc(t, fmt.Sprintf(ingress, "del"))
			tc(t, fmt.Sprintf(ingress, "add")+"prio 9 handle 800::7e1 u32 match u32 0 0 action mirred egress mirror dev "+name)
		}, plan.Detour{Queue: q, Drift: []string{"the filter that sends packets over " + name + " is not as Weir builds it"}}},
		"match": {func() {
			tc(t, fmt.Sprintf(ingress, "del"))
			tc(t, fmt.Sprintf(ingress, "add")+"prio 9 protocol all handle 800::7e1 u32 match ip protocol 6 0xff action mirred egress redirect dev "+name)
		}, plan.Detour{Queue: q, Drift: []string{"the filter that sends packets over " + name + " is not as Weir builds it"}}},
		"protocol": {func() {
			tc(t, fmt.Sprintf(ingress, "del"))
			tc(t, fmt.Sprintf(ingress, "add")+"prio 9 protocol ip handle 800::7e1 u32 match u32 0 0 action mirred egress redirect dev "+name)
		}, plan.Detour{Queue: q, Drift: []string{"the filter that sends packets over " + name + " is not as Weir builds it"}}},
	} {
		t.Log(what) // in this thread, which is in the link's namespace
		c.do()
		detoured(t, link, c.want)
		detour(t, link)
		detoured(t, link, plan.Detour{Queue: q})
	}
}

// TestDetourBesideOthers: the filter is behind our program, and in front of no other; what
// others have stays; and of u32's tables none is left.
func TestDetourBesideOthers(t *testing.T) {
	testutil.Needs(t, append(detourNeeds, "htb qdisc", "bfifo qdisc", "bpf classifier")...)
	link, _ := wire(t, 1)
	p, id := prioritise(t, 1)
	if err := Attach(link.Index, Ingress, p.FD(), "weir"); err != nil {
		t.Fatal(err)
	}
	others := fmt.Sprintf("filter show dev %s ingress prio 2", link.Name)
	tc(t, fmt.Sprintf("filter add dev %s ingress prio 2 protocol all u32 match ip protocol 250 0xff flowid 1:1", link.Name))
	was := tc(t, others)
	detour(t, link)
	if shown := tc(t, fmt.Sprintf("filter show dev %s ingress", link.Name)); !strings.Contains(shown, "pref 3 u32 chain 0 fh 801::7e1") {
		t.Errorf("tc shows\n%s", shown)
	}
	if err := errors.Join(ClearRedirect(link.Index, false), RemoveDetour(link.Index)); err != nil {
		t.Fatal(err)
	}
	if shown := tc(t, fmt.Sprintf("filter show dev %s ingress", link.Name)); strings.Contains(shown, "pref 3") {
		t.Errorf("cleared, tc shows\n%s", shown)
	}
	if is := tc(t, others); is != was {
		t.Errorf("of others:\n%swas\n%s", is, was)
	}
	attached(t, link, Ingress, id)
}

// TestDetourForeign: another's device of our name is told of, and left alone.
func TestDetourForeign(t *testing.T) {
	testutil.Needs(t, append(detourNeeds, "ip")...)
	link := newLink(t, 1)
	name := DetourName(link.Index)
	testutil.Output(t, "ip", "link", "add", name, "type", "ifb")
	foreign := func(err error) {
		t.Helper()
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "the device "+name+" is not Weir's") {
			t.Errorf("%v", err)
		}
	}
	_, err := MakeDetour(link.Index, link.Name)
	foreign(err)
	foreign(CheckDetour(link.Index))
	foreign(OpenDetour(link.Index))
	detoured(t, link, plan.Detour{})
	if index, err := FindDetour(link.Index); index != 0 || err != nil {
		t.Errorf("%d, %v", index, err)
	}
	if err := RemoveDetour(link.Index); err != nil {
		t.Error(err)
	}
	testutil.Output(t, "ip", "link", "show", name)
}

// TestRedirectRead reads what is cut off, or is another's, as none of Weir's.
func TestRedirectRead(t *testing.T) {
	options := encodeRedirect(7).Serialize()[unix.SizeofRtAttr:]
	if to, err := decodeRedirect(options); err != nil || to != 7 {
		t.Fatalf("%d, %v", to, err)
	}
	for cut := range options {
		if to, err := decodeRedirect(options[:cut]); err == nil && to != 0 {
			t.Fatalf("%d of %d bytes: %d", cut, len(options), to)
		}
	}
}
