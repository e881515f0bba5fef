package lab

import (
	"context"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// TestPriorityLab runs the lab on a real HTB; see TestSSHLab for its bounds.
func TestPriorityLab(t *testing.T) {
	testutil.Needs(t, "htb qdisc", "sock_create")
	dir := testutil.Cgroup2(t)
	r, err := Run(context.Background(), "priority", Options{Controller: newRawController(dir), Repetitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	logTable(t, r)
	solo := metric(t, r, "solo", "second_mbit").Median
	if solo < 80 || solo > 97 {
		t.Errorf("alone %.1f of 100 Mbit/s", solo)
	}
	first, second := metric(t, r, "same_class", "first_mbit").Median, metric(t, r, "same_class", "second_mbit").Median
	if share := first / (first + second); share < 0.4 || share > 0.6 {
		t.Errorf("same class: %.1f and %.1f Mbit/s", first, second)
	}
	for _, arm := range []string{"different_class", "live_raise"} {
		if loser := metric(t, r, arm, "first_mbit").Median; loser > 15 {
			t.Errorf("%s: the loser gets %.1f Mbit/s", arm, loser)
		}
	}
	if m := metric(t, r, "flips", "flips_effective"); m.Median < 95 || m.N != 1 || m.Unit != "of 100" {
		t.Errorf("flips: %+v", m)
	}
	if m := metric(t, r, "flips", "effect_ms"); m.Min <= 0 || m.Median > 50 {
		t.Errorf("effect of flips: %+v", m)
	}
	if len(r.Claims) != 5 || len(r.Series) != 2*3*2 {
		t.Errorf("%d claims, %d series", len(r.Claims), len(r.Series))
	}
	plots := ""
	for _, s := range r.Series {
		if !strings.Contains(plots, s.Plot) {
			plots += s.Plot + "; "
		}
	}
	if strings.Count(plots, "; ") != 3 || !strings.HasPrefix(plots, "Same class") {
		t.Errorf("plots %s", plots)
	}
}
