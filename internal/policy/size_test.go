package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Size(rapid.Uint64().Draw(t, "any"))
		if rapid.Bool().Draw(t, "round") {
			size = Size(rapid.Uint64Range(0, 9999).Draw(t, "mantissa")) << rapid.IntRange(0, 50).Draw(t, "shift")
		}
		back, err := ParseSize(size.String())
		if err != nil || back != size {
			t.Fatalf("%d is %q is %d, %v", uint64(size), size, uint64(back), err)
		}
		var text Size
		marshalled, _ := size.MarshalText()
		if err := text.UnmarshalText(marshalled); err != nil || text != size {
			t.Fatalf("%s is %d, %v", marshalled, text, err)
		}
	})
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0B": 0, "64KiB": 65536, "1.5MiB": 1572864, "0.5KiB": 512, "16TiB": 1 << 44, "0.0009765625KiB": 1,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v", text, uint64(got), err)
		}
	}
	for size, want := range map[Size]string{
		0: "0B", 512: "512B", 1023: "1023B", 1536: "1.5KiB", 1 << 20: "1MiB", 1<<20 + 1: "1048577B", 1<<64 - 1: "18446744073709551615B",
	} {
		if got := size.String(); got != want {
			t.Errorf("Size(%d).String() = %q, want %q", uint64(size), got, want)
		}
	}
}

func TestSizeRefuses(t *testing.T) {
	for text, help := range map[string]string{
		"": "64KiB", "64": "64KiB", "64KB": "64KiB", "64kB": "64KiB", "64K": "64KiB", "64k": "64KiB", "64kib": "64KiB", "64Ki": "64KiB",
		"64 MiB": "64MiB", "5b": "5B", "5 bytes": "5B", "10Mbit": "bytes", "064KiB": "64KiB", "-1B": "", "1.5B": "",
		"16777216TiB": "", "5PiB": "units",
	} {
		got, err := ParseSize(text)
		invalid, ok := err.(*ValueError)
		if !ok {
			t.Errorf("ParseSize(%q) = %d, %v", text, got, err)
		} else if !strings.Contains(invalid.Help, help) {
			t.Errorf("ParseSize(%q): help %q, want %q in it", text, invalid.Help, help)
		}
	}
}
