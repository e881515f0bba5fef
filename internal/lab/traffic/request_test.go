package traffic

import (
	"context"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

func TestAsk(t *testing.T) {
	ns := testutil.NewNamespace(t)
	s := serve(t, ns.Path(), 22)
	h, err := Ask(context.Background(), Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 100, Every: 10 * time.Millisecond, For: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if n := h.TotalCount(); n != 20 {
		t.Errorf("%d requests in 200 ms, want 20", n)
	}
	if got := s.Bytes(); got < 20*100+1 || got > 20*100+2 {
		t.Errorf("%d bytes arrived, want 20 requests of 100, the verb, and perhaps the end", got)
	}
	if p50 := time.Duration(h.ValueAtQuantile(50)); p50 <= 0 {
		t.Errorf("median latency on loopback %s", p50)
	}
}

func TestAskAsFastAsAnswered(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	h, err := Ask(context.Background(), Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 1, For: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if h.TotalCount() < 2 {
		t.Errorf("%d requests in 100 ms", h.TotalCount())
	}
}

func TestAskCancelled(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 22)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, Where{Netns: ns.Path(), To: local(22)}, Requests{Size: 1, Every: time.Second, For: time.Minute}); err == nil {
		t.Error("no error")
	}
}
