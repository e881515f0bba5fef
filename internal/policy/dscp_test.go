package policy

import (
	"fmt"
	"testing"
)

func TestDSCP(t *testing.T) {
	want := map[string]int8{"ef": 46, "va": 44, "le": 1, "0": 0, "63": 63}
	for class := range 8 {
		want[fmt.Sprintf("cs%d", class)] = int8(class << 3)
	}
	for class := 1; class <= 4; class++ {
		for drop := 1; drop <= 3; drop++ {
			want[fmt.Sprintf("af%d%d", class, drop)] = int8(class<<3 | drop<<1)
		}
	}
	for text, value := range want {
		if got, err := ParseDSCP(text); err != nil || got != value {
			t.Errorf("ParseDSCP(%q) = %d, %v", text, got, err)
		}
	}
	for value := int8(0); value < 64; value++ {
		if got, err := ParseDSCP(DSCPName(value)); err != nil || got != value {
			t.Errorf("%d prints as %q, which is %d, %v", value, DSCPName(value), got, err)
		}
	}
	for _, text := range []string{"", "64", "-1", "af14", "cs8", "EF", "046", "0x2e"} {
		if got, err := ParseDSCP(text); err == nil {
			t.Errorf("ParseDSCP(%q) = %d", text, got)
		}
	}
}
