package lab

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/policy"
)

// An arm that the kernel lacks is in its place without a figure, and the result
// says why.
func TestAbsentArm(t *testing.T) {
	why := "this kernel lacks the police action"
	l := limitersJudged(t, map[string]string{"tc_police": why, "htb": "no"}, goodLimiters)
	var names []string
	for _, a := range l.result.Arms {
		names = append(names, a.Name)
		if a.Name == "tc_police" && (!slices.Equal(slices.Collect(maps.Keys(a.Metrics)), []string{"pps"}) || a.Metrics["pps"].N != 0) {
			t.Errorf("%+v", a)
		}
	}
	if got := strings.Join(names, " "); got != "none ifb_htb tc_police htb weir" {
		t.Errorf("arms %s", got)
	}
	if !slices.Contains(l.result.Warnings, "arm tc_police is absent: "+why) {
		t.Errorf("warnings %q", l.result.Warnings)
	}
	if strings.Contains(l.result.Claims[2].Evidence, "police") {
		t.Errorf("an arm that is absent as evidence: %q", l.result.Claims[2].Evidence)
	}
	if _, ok := l.result.Ratios["tc_police_over_none"]; ok {
		t.Error("a ratio of nothing")
	}
}

// A repetition begins with another arm each time; absent ones have no turn.
func TestOrderOfArms(t *testing.T) {
	l := &limitersLab{limiter: limiter{absent: map[string]string{"tc_police": "no", "edt": "no"}}}
	for repetition, want := range map[int]string{
		1: "none ifb_htb htb weir",
		2: "ifb_htb htb weir none",
		4: "weir none ifb_htb htb",
		5: "none ifb_htb htb weir",
	} {
		if got := strings.Join(l.order(repetition), " "); got != want {
			t.Errorf("repetition %d: %s, want %s", repetition, got, want)
		}
	}
}

// What HTB's leaf is, a reader of the page, of the table and of JSON must meet.
func TestLeafIsTold(t *testing.T) {
	for leaf, want := range map[hosts.Leaf]string{
		hosts.OneFIFO: "HTB over one FIFO: this kernel has no fq_codel",
		hosts.FqCodel: "HTB over fq_codel",
	} {
		s, err := newSession(experimentOf(t, "limiters"), Options{Controller: newRawController("")})
		if err != nil {
			t.Fatal(err)
		}
		l := &limitersLab{limiter: limiter{session: s, leaf: leaf}, limits: []policy.Rate{1e9, 125e6, 25e6}}
		l.conclude()
		for _, text := range []string{s.result.Environment.Bottleneck, s.result.About.Summary} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %q", want, text)
			}
		}
		if warned := slices.Contains(s.result.Warnings, "arms ifb_htb and htb: "+want); warned != (leaf == hosts.OneFIFO) {
			t.Errorf("%s: warnings %q", leaf, s.result.Warnings)
		}
		for _, label := range s.result.About.Ratios {
			if strings.Contains(label.Text, "htb") != strings.Contains(label.Text, string(leaf)) {
				t.Errorf("%s: %q", leaf, label.Text)
			}
		}
	}
}
