package lab

import (
	"errors"
	"slices"
	"testing"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
	"github.com/weir-net/weir/internal/testutil/feature"
)

// vrfJudged judges repetitions in which all went well, but for what is changed: metrics, by arm and
// name.
func vrfJudged(t *testing.T, repetitions int, changed map[string]float64) *vrfLab {
	t.Helper()
	s, err := newSession(experimentOf(t, "vrf"), Options{Controller: newRawController(""), Repetitions: repetitions})
	if err != nil {
		t.Fatal(err)
	}
	l := &vrfLab{session: s, tries: 5, cause: "the stub is bound to lo"}
	for range repetitions {
		for _, m := range []struct {
			name, unit string
			values     [3]float64 // of the arms; less than nothing: not measured
		}{
			{"lookup_ok", "%", [3]float64{100, 0, 100}},
			{"connect_ok", "%", [3]float64{100, 0, 100}},
			{"session_survived", "%", [3]float64{100, 100, 100}},
			{"session_back", "%", [3]float64{-1, -1, 100}},
			{"answered_by_data", "%", [3]float64{100, 0, 0}},
			{"answered_by_management", "%", [3]float64{0, 0, 100}},
			{"questions_data", "", [3]float64{7, 0, 0}},
			{"questions_management", "", [3]float64{0, 0, 7}},
			{"connect_by_address_ok", "%", [3]float64{-1, 100, 100}},
			{"lookup_outside_ok", "%", [3]float64{-1, 100, 100}},
			{"gap_ms", "ms", [3]float64{4, 6, 4}}, {"gap_ms_ipv6", "ms", [3]float64{4, 7, 4}},
			{"lost", "", [3]float64{0, 1, 0}}, {"lost_ipv6", "", [3]float64{0, 2, 0}},
			{"session_wait_ms", "ms", [3]float64{3, 206, 3}}, {"session_wait_ms_ipv6", "ms", [3]float64{3, 206, 3}},
			{"back_gap_ms", "ms", [3]float64{-1, -1, 6}}, {"back_gap_ms_ipv6", "ms", [3]float64{-1, -1, 6}},
			{"back_lost", "", [3]float64{-1, -1, 1}}, {"back_lost_ipv6", "", [3]float64{-1, -1, 1}},
			{"back_session_wait_ms", "ms", [3]float64{-1, -1, 206}}, {"back_session_wait_ms_ipv6", "ms", [3]float64{-1, -1, 206}},
			{"apply_ms", "ms", [3]float64{-1, 400, -1}},
		} {
			for i, arm := range vrfInfo.Arms {
				value := m.values[i]
				if other, ok := changed[arm+" "+m.name]; ok {
					value = other
				}
				if value >= 0 {
					l.measured(arm, m.name, m.unit, value)
				}
			}
		}
	}
	l.conclude()
	return l
}

func TestVRFClaims(t *testing.T) {
	for _, c := range []struct {
		name    string
		changed map[string]float64
		want    string
	}{
		{"good", nil, "kept kept kept kept kept"},
		{"a lookup without a VRF fails", map[string]float64{"default answered_by_data": 80}, "broken kept kept kept kept"},
		{"it is answered by management", map[string]float64{"default answered_by_management": 20}, "broken kept kept kept kept"},
		{"it leads elsewhere", map[string]float64{"default connect_ok": 80}, "broken kept kept kept kept"},
		{"the stub answers", map[string]float64{"vrf_broken_dns lookup_ok": 20}, "kept broken kept kept kept"},
		{"nothing is reached at all", map[string]float64{"vrf_broken_dns connect_by_address_ok": 0}, "kept broken kept kept kept"},
		{"one lookup fails after the fix", map[string]float64{"vrf_fixed answered_by_management": 80}, "kept kept broken kept kept"},
		{"the wrong server answers", map[string]float64{"vrf_fixed answered_by_data": 20}, "kept kept broken kept kept"},
		{"the wrong host is reached", map[string]float64{"vrf_fixed connect_ok": 80}, "kept kept broken kept kept"},
		{"others have no names", map[string]float64{"vrf_fixed lookup_outside_ok": 0}, "kept kept kept broken kept"},
		{"a session dies by the move", map[string]float64{"vrf_broken_dns session_survived": 90}, "kept kept kept kept broken"},
		{"or on the way back", map[string]float64{"vrf_fixed session_back": 90}, "kept kept kept kept broken"},
		{"it was dead before", map[string]float64{"default session_survived": 90}, "kept kept kept kept broken"},
		{"nobody asked outside", map[string]float64{"vrf_broken_dns lookup_outside_ok": -1}, "kept kept kept open kept"},
		{"no datagram came", map[string]float64{"vrf_broken_dns gap_ms": -1}, "kept kept kept kept kept"},
	} {
		l := vrfJudged(t, 6, c.changed)
		if got := verdicts(l.result.Claims); got != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.name, got, c.want, l.result.Claims)
		}
	}
}

func TestVRFEvidence(t *testing.T) {
	claims := vrfJudged(t, 6, map[string]float64{"vrf_fixed connect_ok": 80}).result.Claims
	for i, want := range []string{
		"30 of 30 lookups answered by the data network's server (over 90.5 % of all, with a confidence of 95 %); 0 of 30 by the management network's (below 9.5 % of all, with a confidence of 95 %); 30 of 30 connections to a name reached the data network (over 90.5 % of all, with a confidence of 95 %)",
		"0 of 30 lookups answered (below 9.5 % of all, with a confidence of 95 %); 0 of 30 connections to a name (below 9.5 % of all, with a confidence of 95 %); 30 of 30 connections to an address reached the management network (over 90.5 % of all, with a confidence of 95 %); weir vrf doctor says: the stub is bound to lo",
		"30 of 30 lookups answered by the management network's server (over 90.5 % of all, with a confidence of 95 %); 0 of 30 by the data network's (below 9.5 % of all, with a confidence of 95 %); 24 of 30 connections to a name reached the management network",
		"30 of 30 lookups in arm vrf_broken_dns (over 90.5 % of all, with a confidence of 95 %); 30 of 30 lookups in arm vrf_fixed (over 90.5 % of all, with a confidence of 95 %)",
		"60 of 60 sessions before the move (over 95.1 % of all, with a confidence of 95 %); 60 of 60 after it (over 95.1 % of all, with a confidence of 95 %); 60 of 60 after lookups were mended (over 95.1 % of all, with a confidence of 95 %); 60 of 60 after the move back (over 95.1 % of all, with a confidence of 95 %)" +
			"; the move let no datagram of IPv4 pass for 6.0 ms (6.0 to 6.0; without a move 4.0), and 1 (1 to 1) were lost; the move let no datagram of IPv6 pass for 7.0 ms (7.0 to 7.0; without a move 4.0), and 2 (2 to 2) were lost",
	} {
		if claims[i].Evidence != want {
			t.Errorf("%q, want %q", claims[i].Evidence, want)
		}
	}
}

// Every metric has words that a reader meets in place of its name, and no words are of none.
func TestVRFIsDescribed(t *testing.T) {
	l := vrfJudged(t, 1, nil)
	var named, measured []string
	for _, label := range l.result.About.Metrics {
		named = append(named, label.Name)
	}
	for _, arm := range l.result.Arms {
		for name := range arm.Metrics {
			if !slices.Contains(named, name) {
				t.Errorf("%s has no words", name)
			}
			measured = append(measured, name)
		}
	}
	for _, name := range named {
		if !slices.Contains(measured, name) {
			t.Errorf("there is no %s", name)
		}
	}
	p, err := policy.Parse("vrf.yaml", []byte(l.result.Environment.Policy))
	if err != nil || len(p.VRFs) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Where the kernel has no VRF that is said before there is a lab.
func TestVRFLabNeedsVRF(t *testing.T) {
	testutil.Needs(t, "root") // else nobody can tell
	has, err := feature.Has("vrf link")
	if err != nil {
		t.Fatal(err)
	}
	if err := Possible("vrf"); has != !errors.Is(err, host.ErrNoVRF) {
		t.Errorf("VRF: %t; %v", has, err)
	}
	for _, name := range []string{"ssh", "cpu-cost"} {
		if err := Possible(name); err != nil {
			t.Error(err)
		}
	}
	if err := Possible("shh"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v", err)
	}
}
