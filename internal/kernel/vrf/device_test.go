package vrf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
)

// A VRF is a device that is up, with a loopback of its own, and a table that ends: what others take of that is made anew,
// and nothing of it stays in the end.
func TestDevice(t *testing.T) {
	b := newBed(t)
	before := b.all()
	want := map[string]plan.VRF{"mgmt": {Table: 1000}, "blue": {Table: 300000}}
	b.mustReach(want)
	for args, has := range map[string]string{
		"-d -o link show dev mgmt":  "vrf table 1000",
		"-d -o link show dev blue":  "vrf table 300000",
		"-o addr show dev mgmt":     "inet 127.0.0.1/8",
		"-o -6 addr show dev mgmt":  "inet6 ::1/128",
		"route show vrf mgmt":       "unreachable default proto static metric 4278198272",
		"-6 route show vrf blue":    "unreachable default dev lo proto static metric 4278198272",
		"route get vrf mgmt 127.1":  "dev mgmt table 1000",
		"-6 route get vrf mgmt ::1": "dev mgmt table 1000",
	} {
		if out := b.ip(args); !strings.Contains(out, has) {
			t.Errorf("ip %s has no %q:\n%s", args, has, out)
		}
	}
	const ends = "what has no route there goes on in the main table "
	b.drifts(want, [][2]string{
		{"addr del 127.0.0.1/8 dev mgmt", "127.0.0.1/8 is missing"},
		{"-6 addr del ::1/128 dev mgmt", "::1/128 is missing"},
		{"route del unreachable default table 1000 metric 4278198272", ends + "(IPv4)"},
		{"-6 route del unreachable default table 1000 metric 4278198272", ends + "(IPv6)"},
	})
	b.ip("link set mgmt down")
	if got := b.lacks("mgmt"); !strings.Contains(got, "it is down") {
		t.Errorf("down, it lacks %q", got)
	}
	b.mustReach(want)
	b.ip("link del blue")
	if got := b.lacks("blue"); got != "it is not there" {
		t.Errorf("deleted, it lacks %q", got)
	}
	for b.breakAt = 1; ; b.breakAt++ { // at whatever place somebody is cut off, the next one finishes
		err := b.reach(nil)
		if err == nil {
			break
		}
		at := b.breakAt
		if b.mustReach(want); b.lacks("mgmt")+b.lacks("blue") != "" {
			t.Errorf("cut off at place %d, then made: it lacks %q, %q", at, b.lacks("mgmt"), b.lacks("blue"))
		}
		b.breakAt = at
	}
	if diff := cmp.Diff(before, b.all()); diff != "" {
		t.Errorf("left (-before +after)\n%s", diff)
	}
	b.mustReach(nil) // of nothing nothing is made
	if b.places != 0 {
		t.Errorf("removed once more in %d places", b.places)
	}
}
