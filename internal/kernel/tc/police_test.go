package tc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

var policeNeeds = []string{"clsact qdisc", "matchall classifier", "police action", "gact action"}

// policedAt fails the test unless just these limits are read at the hook.
func policedAt(t *testing.T, link testutil.End, hook Hook, want ...plan.Limit) Police {
	t.Helper()
	all, err := Polices(link.Index)
	if err != nil || len(all[hook]) != len(want) {
		t.Fatalf("read %+v, %v at %s, want %v", all, err, hook, want)
	}
	for i, p := range all[hook] {
		if p.Limit != want[i] {
			t.Errorf("read %+v at %s, want %v", p, hook, want)
		}
	}
	if len(want) == 0 {
		return Police{}
	}
	return all[hook][0]
}

// TestPolice holds each hook to limits, as tc sees them, and counts what they drop.
func TestPolice(t *testing.T) {
	testutil.Needs(t, policeNeeds...)
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			link, from, to := crossing(t, hook)
			before := shape(t, link)
			header := 0
			if hook == Ingress {
				header = 14
			}
			for _, c := range []struct {
				limit plan.Limit
				tc    string
			}{
				{plan.Limit{Max: 100e6, Burst: 1 << 20}, "rate 100Mbit burst 1024Kb"},
				{plan.Limit{Max: 64e9, Burst: 1 << 30}, "rate 64Gbit burst 1073736000b"},
				{plan.Limit{Max: 64e3, Burst: 128 << 10}, "rate 64Kbit burst 128Kb"},
			} {
				for range 2 { // the second changes nothing
					if err := SetPolice(link.Index, hook, c.limit, header); err != nil {
						t.Fatal(err)
					}
					policedAt(t, link, hook, c.limit)
					policedAt(t, link, hook.other())
				}
				shown := tc(t, fmt.Sprintf("filter show dev %s %s", link.Name, hook))
				if strings.Count(shown, "matchall") != 2 || !strings.Contains(shown, c.tc) || !strings.Contains(shown, "action drop") {
					t.Errorf("tc shows, for %v:\n%s", c.limit, shown)
				}
			}
			// 128 KiB let 91 of 1,400 bytes through, and 8 KB/s a few more.
			const sent, payload = 200, 1400
			for range sent {
				if _, err := from.WriteTo(make([]byte, payload), to.LocalAddr()); err != nil {
					t.Fatal(err)
				}
			}
			const frame = payload + 8 + 20 + 14
			p := policedAt(t, link, hook, plan.Limit{Max: 64e3, Burst: 128 << 10})
			if n := int(p.Passed.Packets); n < 128<<10/frame-1 || n > 128<<10/frame+20 || n+int(p.Dropped) < sent {
				t.Errorf("%+v of %d", p, sent)
			}
			// The hosts themselves may have sent a small packet or two.
			if bytes, whole := int(p.Passed.Bytes), int(p.Passed.Packets)*(frame-header); bytes > whole || bytes < whole-3*(frame-header) {
				t.Errorf("%d frames have %d bytes at the %s, want %d", p.Passed.Packets, bytes, hook, whole)
			}
			for range 2 {
				if err := ClearPolice(link.Index, hook, false); err != nil {
					t.Fatal(err)
				}
				policedAt(t, link, hook)
			}
			if after := shape(t, link); after != before {
				t.Errorf("cleared:\n%swant:\n%s", after, before)
			}
		})
	}
}

// TestPoliceBesideOthers: a filter is behind our program and in front of no other, what
// others have stays, and clsact with it; what they made of ours is no limit.
func TestPoliceBesideOthers(t *testing.T) {
	testutil.Needs(t, append(policeNeeds, "bpf classifier")...)
	link, _ := wire(t, 1)
	p, id := prioritise(t, 1)
	if err := Attach(link.Index, Egress, p.FD(), "weir"); err != nil {
		t.Fatal(err)
	}
	tc(t, fmt.Sprintf("filter add dev %s egress prio 2 matchall action pass", link.Name))
	limit, other := plan.Limit{Max: 1e6, Burst: 128 << 10}, plan.Limit{Max: 2e6, Burst: 128 << 10}
	if err := SetPolice(link.Index, Egress, limit, 0); err != nil {
		t.Fatal(err)
	}
	if shown := tc(t, fmt.Sprintf("filter show dev %s egress", link.Name)); !strings.Contains(shown, "pref 3 matchall") {
		t.Errorf("tc shows\n%s", shown)
	}
	policedAt(t, link, Egress, limit)
	// A change that was broken off leaves two.
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.addPolice(link.Index, Egress, other, 0); err != nil {
		t.Fatal(err)
	}
	policedAt(t, link, Egress, limit, other)
	if err := SetPolice(link.Index, Egress, other, 0); err != nil {
		t.Fatal(err)
	}
	policedAt(t, link, Egress, other)
	if err := ClearPolice(link.Index, Egress, true); err != nil {
		t.Fatal(err)
	}
	tc(t, fmt.Sprintf("filter add dev %s egress prio 4 handle 0x7e1f matchall action police rate 1mbit burst 128k conform-exceed pass", link.Name))
	found, err := Polices(link.Index)
	if err != nil || len(found[Egress]) != 1 || found[Egress][0].Limit != (plan.Limit{}) {
		t.Errorf("of somebody else's police: %+v, %v", found, err)
	}
	if err := ClearPolice(link.Index, Egress, false); err != nil {
		t.Fatal(err)
	}
	policedAt(t, link, Egress)
	attached(t, link, Egress, id)
	if err := Detach(link.Index, Egress, false); err != nil {
		t.Fatal(err)
	}
	if shown := tc(t, fmt.Sprintf("filter show dev %s egress", link.Name)); !strings.Contains(shown, "pref 2 matchall") {
		t.Errorf("tc shows, of others:\n%s", shown)
	}
}

// TestPoliceRefused: where there is no place, or no such action, nothing is left.
func TestPoliceRefused(t *testing.T) {
	testutil.Needs(t, "ingress qdisc")
	link, _ := wire(t, 1)
	tc(t, fmt.Sprintf("qdisc add dev %s ingress", link.Name))
	err := SetPolice(link.Index, Ingress, plan.Limit{Max: 1e6, Burst: 128 << 10}, 0)
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "ingress qdisc is where clsact has to be") {
		t.Errorf("%v", err)
	}
	if err := ClearPolice(link.Index, Ingress, false); err != nil {
		t.Error(err)
	}
	if all, err := Polices(link.Index); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestPoliceRead reads what is cut off, or is another's, without a limit.
func TestPoliceRead(t *testing.T) {
	options := encodePolice(plan.Limit{Max: 1e6, Burst: 128 << 10}, 14).Serialize()[unix.SizeofRtAttr:]
	p, err := decodePolice(options)
	if err != nil || p.Limit != (plan.Limit{Max: 1e6, Burst: 128 << 10}) {
		t.Fatalf("%+v, %v", p, err)
	}
	for cut := range options {
		if p, err := decodePolice(options[:cut]); err == nil && p.Limit != (plan.Limit{}) && cut < len(options)-8 {
			t.Fatalf("%d of %d bytes: %+v", cut, len(options), p)
		}
	}
	lone := container(0)
	addAction(lone.AddRtAttr(nl.TCA_MATCHALL_ACT, nil), 1, passKind)
	if p, err := decodePolice(lone.Serialize()[unix.SizeofRtAttr:]); err != nil || p.Limit != (plan.Limit{}) {
		t.Errorf("%+v, %v", p, err)
	}
}
