package traffic

import (
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// TestStuffer opens as many connections as it is told to, though none takes what is written.
func TestStuffer(t *testing.T) {
	ns := testutil.NewNamespace(t)
	d := deaf(t, ns.Path(), 9)
	s := Stuff(Where{Netns: ns.Path(), To: local(9)}, 20, 64<<20)
	eventually(t, "all are there", func() bool { return s.Connections() == 20 && d.Connections() == 20 })
	if n, err := s.Stop(); n != 20 || err != nil {
		t.Errorf("%d connections, %v", n, err)
	}
}

// TestStufferIsStopped in the middle of it, and where nobody listens.
func TestStufferIsStopped(t *testing.T) {
	ns := testutil.NewNamespace(t)
	if n, err := Stuff(Where{Netns: ns.Path(), To: local(9)}, 1<<20, 1).Stop(); err != nil {
		t.Errorf("stopped at once: %d, %v", n, err)
	}
	s := Stuff(Where{Netns: ns.Path(), To: local(10)}, 1, 1)
	time.Sleep(50 * time.Millisecond)
	if n, err := s.Stop(); n != 0 || err == nil {
		t.Errorf("nobody listens: %d connections, %v", n, err)
	}
}
