package hosts

import (
	"os"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestNewNetnsComesBack(t *testing.T) {
	testutil.Needs(t, "root")
	const current = "/proc/thread-self/ns/net"
	home, err := os.Readlink(current)
	if err != nil {
		t.Fatal(err)
	}
	// More than there are threads, so that one that stayed away would be met.
	for range 50 {
		file, err := newNetns()
		if err != nil {
			t.Fatal(err)
		}
		inside, err := os.Stat(file.Name())
		if err == nil {
			held, err := file.Stat()
			if err == nil && os.SameFile(inside, held) {
				t.Fatal("the new namespace is the caller's")
			}
		}
		file.Close()
		if now, err := os.Readlink(current); err != nil || now != home {
			t.Fatalf("the caller is in %s (%v), and was in %s", now, err, home)
		}
	}
}
