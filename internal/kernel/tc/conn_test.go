package tc

import (
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestSteady: a dump counts once the next one names the same objects.
func TestSteady(t *testing.T) {
	whole := entries{{kind: "htb", handle: 1}, {kind: "bfifo", handle: 2}}
	part, other := whole[:1], entries{{kind: "htb", handle: 1}, {kind: "pfifo", handle: 2}}
	for _, test := range []struct {
		name  string
		dumps []entries
		want  entries
	}{
		{"quiet", []entries{whole, whole}, whole},
		{"first cut short", []entries{part, whole, whole}, whole},
		{"second cut short", []entries{whole, part, whole, whole}, whole},
		{"changed", []entries{whole, other, other}, other},
		{"gone", []entries{whole, nil, nil}, nil},
	} {
		left := test.dumps
		got, err := steady(func() (entries, error) {
			next := left[0]
			left = left[1:]
			return next, nil
		})
		if err != nil || !sameObjects(got, test.want) || len(left) > 0 {
			t.Errorf("%s: %v, %v with %d dumps left, want %v", test.name, got, err, len(left), test.want)
		}
	}
	n := uint32(0)
	if got, err := steady(func() (entries, error) { n++; return entries{{handle: n}}, nil }); err == nil {
		t.Errorf("what never rests was read as %v", got)
	}
}

// TestReadWhileLinksGo: a link that goes away in the middle of the kernel's dump
// may hide qdiscs of another one, and a second dump finds them.
func TestReadWhileLinksGo(t *testing.T) {
	ns := testutil.Netns(t)
	first, _ := testutil.Veth(t, ns, ns, testutil.VethOptions{NoIP: true})
	link, _ := testutil.Veth(t, ns, ns, testutil.VethOptions{NoIP: true})
	q := caseNamed(t, "htb buckets")
	q.Classes, q.Map = 8, plan.SpreadOver(8)
	apply(t, link, q) // more qdiscs than a first message holds
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	whole, err := c.qdiscs(link.Index)
	if err != nil {
		t.Fatal(err)
	}
	disturbed := dumpWhile(t, link.Index, func() error {
		return netlink.LinkDel(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: first.Index}})
	})
	t.Logf("the disturbed dump has %d of %d qdiscs", len(disturbed), len(whole))
	calls := 0
	got, err := steady(func() (entries, error) {
		if calls++; calls == 1 {
			return disturbed, nil
		}
		return c.dump(link.Index, unix.RTM_GETQDISC, unix.RTM_NEWQDISC, 0)
	})
	if err != nil || !sameObjects(got, whole) {
		t.Errorf("%d of %d qdiscs, %v", len(got), len(whole), err)
	}
}

// dumpWhile dumps the qdiscs and does something while the kernel has no more
// than the first message ready, which on a new socket is a page.
func dumpWhile(t *testing.T, link int, do func() error) entries {
	t.Helper()
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	socket := c.socket.Socket
	if err := socket.Send(c.request(unix.RTM_GETQDISC, unix.NLM_F_DUMP, nl.TcMsg{})); err != nil {
		t.Fatal(err)
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	var raw [][]byte
	for {
		messages, _, err := socket.Receive()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.RTM_NEWQDISC:
				raw = append(raw, m.Data)
				if m.Header.Flags&unix.NLM_F_DUMP_INTR != 0 {
					t.Error("the kernel says of a dump that it was disturbed: steady need not guess")
				}
			case unix.NLMSG_DONE:
				out, err := parseEntries(link, unix.RTM_NEWQDISC, raw)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
		}
	}
}
