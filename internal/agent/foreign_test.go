package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// TestForeignTCP limits what arrives from a sender that nobody can pace, as another
// host's or a virtual machine's: it gets what the limit leaves it, by losses.
func TestForeignTCP(t *testing.T) {
	testutil.Needs(t, "BPF atomics", "BPF tail calls")
	s := newStreet(t)
	for _, flows := range []string{"1", "8"} {
		t.Run("flows "+flows, func(t *testing.T) {
			iperfServer(t, s.router, 5201)
			const limit = 20
			text := fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: none, ingress: {max: %dMbit}}\n", s.in.Name, limit)
			applyText(t, s.Agent, text)
			defer func() {
				if err := s.Reset(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			// Outside of the scope's cgroup no program of ours tells TCP a pace.
			arrives := func() map[string]float64 {
				var out strings.Builder
				cmd := start(t, s.client, "", &out, "iperf3", "--client", s.in.IPv4.Addr().String(), "--port", "5201", "--time", "6", "--parallel", flows, "--json")
				time.Sleep(time.Second) // the bucket is full at first
				all := rates(t, s.Agent, 4*time.Second)
				wait(t, cmd, &out)
				return all
			}
			within(t, arrives, map[string]float64{s.in.Name + " ingress": limit * 1.03}, s.in.Name+" ingress")
			held, err := s.held(record(t, s.Agent))
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range held {
				if h.Dropped == 0 {
					t.Errorf("nothing was dropped: %v", h)
				}
			}
		})
	}
}
