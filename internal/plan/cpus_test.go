package plan

import (
	"slices"
	"testing"
)

func TestCPUs(t *testing.T) {
	for _, tt := range []struct {
		mask, list string // as we write them
		cpus       CPUs
	}{
		{"0", "", CPUs{}},
		{"1", "0", CPUs{0}},
		{"3", "0-1", CPUs{0, 1}},
		{"80000000", "31", CPUs{31}},
		{"1,00000000", "32", CPUs{32}},
		{"2,00000000,0000010f", "0-3,8,65", CPUs{0, 1, 2, 3, 8, 65}},
	} {
		if got := tt.cpus.Mask(); got != tt.mask {
			t.Errorf("mask of %v: %s, want %s", tt.cpus, got, tt.mask)
		}
		if got := tt.cpus.String(); got != tt.list {
			t.Errorf("list of %v: %s, want %s", tt.cpus, got, tt.list)
		}
		if got, err := ParseCPUMask("00000000," + tt.mask + "\n"); err != nil || !slices.Equal(got, tt.cpus) {
			t.Errorf("mask %s: %v, %v, want %v", tt.mask, got, err, tt.cpus)
		}
		if got, err := ParseCPUs(tt.list + "\n"); err != nil || !slices.Equal(got, tt.cpus) {
			t.Errorf("list %s: %v, %v, want %v", tt.list, got, err, tt.cpus)
		}
	}
	for _, bad := range []string{"x", "3-1", "1,x", "-1", "1-", "99999999"} {
		if got, err := ParseCPUs(bad); err == nil {
			t.Errorf("list %q is %v", bad, got)
		}
	}
	for _, bad := range []string{"", "x", "1,,1", "123456789"} {
		if got, err := ParseCPUMask(bad); err == nil {
			t.Errorf("mask %q is %v", bad, got)
		}
	}
}
