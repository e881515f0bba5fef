package traffic

import (
	"context"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

func TestBlast(t *testing.T) {
	ns := testutil.NewNamespace(t)
	c, err := Count(ns.Path(), local(9000))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent, err := Blast(context.Background(), Where{Netns: ns.Path(), To: local(9000)}, Datagrams{Size: 200, PerSecond: 5000, For: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if sent < 1400 || sent > 2200 {
		t.Errorf("%d packets, want about 2000", sent)
	}
	time.Sleep(50 * time.Millisecond)
	// A receive buffer may overflow on a busy machine, but no packet is invented.
	if got := c.Packets(); got > sent || got < sent*9/10 || c.Bytes() != got*200 {
		t.Errorf("%d packets sent, %d with %d bytes counted", sent, got, c.Bytes())
	}
}

func TestBlastToNobody(t *testing.T) {
	ns := testutil.NewNamespace(t)
	sent, err := Blast(context.Background(), Where{Netns: ns.Path(), To: local(9000)}, Datagrams{Size: 1, PerSecond: 1000, For: 50 * time.Millisecond})
	if err != nil {
		t.Errorf("a refused packet is an error: %v", err)
	}
	if sent == 0 {
		t.Error("nothing was sent")
	}
}
