package workload

import (
	"errors"
	"os/exec"
	"testing"
)

// What was opened while the process lived never shows another one, whoever has
// its number by now.
func TestProcDirOfExitedProcess(t *testing.T) {
	c := start(t, exec.Command("cat"))
	dir, err := openProc(c.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.close()
	if stat, err := dir.stat(); err != nil || stat.exited() {
		t.Errorf("a process that lives: %+v, %v", stat, err)
	}
	if numbers, err := dir.descriptors(); err != nil || len(numbers) < 3 {
		t.Errorf("descriptors %v, %v; want standard input and output at least", numbers, err)
	}
	c.end()
	if _, err := dir.read("stat"); !errors.Is(err, ErrGone) {
		t.Errorf("read: %v, want ErrGone", err)
	}
	if _, err := dir.link("exe"); !errors.Is(err, ErrGone) {
		t.Errorf("link: %v, want ErrGone", err)
	}
	if _, err := dir.descriptors(); !errors.Is(err, ErrGone) {
		t.Errorf("descriptors: %v, want ErrGone", err)
	}
	if _, err := openProc(c.pid()); !errors.Is(err, ErrGone) {
		t.Errorf("openProc: %v, want ErrGone", err)
	}
}
