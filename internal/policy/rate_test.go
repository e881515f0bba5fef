package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Mantissas with many zeros behind them reach every unit.
		rate := Rate(rapid.Uint64().Draw(t, "any"))
		if rapid.Bool().Draw(t, "round") {
			rate = Rate(rapid.Uint64Range(0, 99999).Draw(t, "mantissa"))
			for range rapid.IntRange(0, 14).Draw(t, "zeros") {
				rate *= 10
			}
		}
		back, err := ParseRate(rate.String())
		if err != nil || back != rate {
			t.Fatalf("%d is %q is %d, %v", uint64(rate), rate, uint64(back), err)
		}
	})
}

func TestRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"0bit": 0, "1bit": 1, "10Mbit": 10_000_000, "1.5Gbit": 1_500_000_000, "0.001Kbit": 1,
		"2.50Kbit": 2500, "18446744073709551615bit": 1<<64 - 1, "18Tbit": 18_000_000_000_000,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v", text, uint64(got), err)
		}
	}
	for rate, want := range map[Rate]string{
		0: "0bit", 999: "999bit", 1000: "1Kbit", 1_234_567: "1234.567Kbit", 1_500_000_000: "1.5Gbit", 1<<64 - 1: "18446744073709551.615Kbit",
	} {
		if got := rate.String(); got != want {
			t.Errorf("Rate(%d).String() = %q, want %q", uint64(rate), got, want)
		}
	}
}

func TestRateRefuses(t *testing.T) {
	for text, help := range map[string]string{
		"": "10Mbit", "10": "10Mbit", "1000000000": "1Gbit", "10mbit": "10Mbit?", "10MBIT": "10Mbit?", "10Mb/s": "10Mbit?",
		"10MB/s": "80Mbit", "10mbps": "80Mbit", "10Mbps": "10Mbit?", "10M": "10Mbit?", "10g": "10Gbit?", "10 Mbit": "10Mbit",
		"10Mibit": "10Mbit", "010Mbit": "10Mbit", "00.5Mbit": "0.5Mbit", "-1Mbit": "10Mbit", "1e3Kbit": "decimals", "10Mbti": "10Mbit?",
		"0x10bit": "decimals", "10b": "10bit?", "1_000Kbit": "",
		"1.2.3Mbit": "", "1.Mbit": "", ".5Mbit": "", "0.5bit": "", "18446744073709551616bit": "", "99999999Tbit": "",
		strings.Repeat("9", 50) + "bit": "", "10Mbit ": "10Mbit", "10Mbit\x00": "", "10 ": "10Mbit", "1000000000\t": "1Gbit",
		"10bps": "80bit", "2305843009213693952bps": "2305843009213693952bit?",
	} {
		got, err := ParseRate(text)
		invalid, ok := err.(*ValueError)
		if !ok {
			t.Errorf("ParseRate(%q) = %d, %v", text, got, err)
		} else if !strings.Contains(invalid.Help, help) {
			t.Errorf("ParseRate(%q): help %q, want %q in it", text, invalid.Help, help)
		}
	}
}

func TestRateAsText(t *testing.T) {
	type document struct{ Rate Rate }
	text, err := json.Marshal(document{1_500_000_000})
	if err != nil || string(text) != `{"Rate":"1.5Gbit"}` {
		t.Fatalf("%s, %v", text, err)
	}
	var back document
	if err := json.Unmarshal(text, &back); err != nil || back.Rate != 1_500_000_000 {
		t.Errorf("%v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"Rate":"5"}`), &back); err == nil {
		t.Error("a rate without a unit is accepted")
	}
}
