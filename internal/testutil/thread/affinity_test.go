package thread

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestAffinities(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if cpus, err := Affinities(); err != nil || cpus != all.Count() {
		t.Errorf("all threads may run on %d CPUs, %v, this one on %d", cpus, err, all.Count())
	}
	if all.Count() < 2 {
		return
	}
	if err := Run(func() error {
		var one unix.CPUSet
		one.Set(0)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		if cpus, err := Affinities(); err != nil || cpus != -1 {
			t.Errorf("one thread differs, %d CPUs, %v", cpus, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
