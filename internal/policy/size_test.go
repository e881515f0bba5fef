package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size(rapid.Uint64().Draw(t, "any")) << rapid.IntRange(0, 40).Draw(t, "zeros")
		back, err := ParseSize(size.String())
		if err != nil || back != size {
			t.Fatalf("%d is %q is %d, %v", uint64(size), size, uint64(back), err)
		}
	})
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0B": 0, "1514B": 1514, "64KiB": 64 << 10, "1.5MiB": 3 << 19, "1GiB": 1 << 30, "0.5KiB": 512, "18446744073709551615B": 1<<64 - 1,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v", text, uint64(got), err)
		}
	}
	for size, want := range map[Size]string{0: "0B", 1023: "1023B", 1 << 10: "1KiB", 3 << 19: "1536KiB", 1 << 40: "1024GiB"} {
		if got := size.String(); got != want {
			t.Errorf("Size(%d).String() = %q, want %q", uint64(size), got, want)
		}
	}
}

func TestSizeRefuses(t *testing.T) {
	for text, help := range map[string]string{
		"": "64KiB", "64": "64KiB", "64 ": "64KiB", "64k": "64KiB?", "64KB": "64KiB?", "64kib": "64KiB?", "1M": "1MiB?", "1Mi": "1MiB?", "1gb": "1GiB?",
		"64 KiB": "without the space", "64Kbit": "the units are", "064KiB": "64KiB", "-1KiB": "64KiB", "1e3B": "the units are",
		"1.2.3MiB": "1.5MiB", ".5MiB": "1.5MiB", "1.MiB": "1.5MiB", "0.5B": "", "0.3KiB": "", "18446744073709551616B": "at most", "99999999999GiB": "at most",
		strings.Repeat("9", 50) + "B": "1.5MiB",
	} {
		got, err := ParseSize(text)
		invalid, ok := err.(*ValueError)
		if !ok {
			t.Errorf("ParseSize(%q) = %d, %v", text, got, err)
		} else if !strings.Contains(invalid.Help, help) {
			t.Errorf("ParseSize(%q): %v, want help with %q", text, err, help)
		}
	}
}
