package traffic

import (
	"runtime"
	"slices"
	"testing"
)

// A thread that stays on a CPU may have that one alone.
func TestStayOn(t *testing.T) {
	runtime.LockOSThread() // which ends with the test
	all, err := cpus()
	if err != nil || len(all) == 0 || !slices.IsSorted(all) {
		t.Fatalf("CPUs %v, %v", all, err)
	}
	last := all[len(all)-1]
	if err := stayOn(last); err != nil {
		t.Fatal(err)
	}
	if now, err := cpus(); err != nil || !slices.Equal(now, []int{last}) {
		t.Errorf("CPUs %v, %v, want %d alone", now, err, last)
	}
	if err := stayOn(1023); err == nil {
		t.Error("stays on a CPU that is not there")
	}
}
