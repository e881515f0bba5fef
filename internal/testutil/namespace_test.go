package testutil

import (
	"os"
	"strings"
	"testing"
)

func netnsOf(t *testing.T) string {
	t.Helper()
	id, err := os.Readlink(threadNetns)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestNetns(t *testing.T) {
	before := netnsOf(t)
	var inside, path, links string
	// A subtest would run on another goroutine: the cleanup is what is tested.
	t.Cleanup(func() {
		if after := netnsOf(t); after != before {
			t.Errorf("after the test in %s, want %s", after, before)
		}
	})
	n := Netns(t)
	inside = netnsOf(t)
	if inside == before {
		t.Fatal("the test is in the namespace it came from")
	}
	if path, _ = os.Readlink(n.Path()); path != inside {
		t.Errorf("Path is %s, want %s", path, inside)
	}
	links = Output(t, Tool(t, "ip"), "-brief", "link")
	if !strings.Contains(links, "lo") || strings.Count(links, "\n") != 1 || !strings.Contains(links, ",UP") {
		t.Errorf("want lo alone and up, got %q", links)
	}
	var other string
	m := NewNamespace(t)
	m.Do(func() { other = netnsOf(t) })
	if got := netnsOf(t); got != inside || other == inside {
		t.Errorf("Do ran in %s and left the test in %s, which was in %s", other, got, inside)
	}
	if out := m.Output(Tool(t, "nsenter"), "--net="+n.Path(), "readlink", "/proc/self/ns/net"); strings.TrimSpace(out) != inside {
		t.Errorf("another process finds %s at Path, want %s", out, inside)
	}
}
