package workload

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// The largest buffers are those of the host, in a network namespace that does not show them too.
func TestLargestBuffers(t *testing.T) {
	want := func(name string) uint32 {
		text, err := os.ReadFile("/proc/sys/net/core/" + name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return uint32(2 * n)
	}
	wantSend, wantReceive := want("wmem_max"), want("rmem_max")
	testutil.Needs(t, "root")
	var send, receive uint32
	var err error
	testutil.NewNamespace(t).Do(func() { send, receive, err = LargestBuffers() })
	if err != nil || send != wantSend || receive != wantReceive {
		t.Errorf("%d and %d, %v, want %d and %d", send, receive, err, wantSend, wantReceive)
	}
}
