package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// TestChurn applies and judges while cgroups that a pattern claims come and go
// all the time: that is no drift, and no apply goes back for it.
func TestChurn(t *testing.T) {
	testutil.Needs(t, "raw_tracepoint")
	b := newBench(t)
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			dir := filepath.Join(b.dir, fmt.Sprintf("job-%d", i))
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				ended <- err
				return
			}
			time.Sleep(time.Duration(i%7) * time.Millisecond)
			if err := os.Remove(dir); err != nil {
				ended <- err
				return
			}
		}
	}()
	defer func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for i := range 20 {
		b.apply(t, b.policyText(fmt.Sprintf("  jobs: {match: [{cgroup: %s/job-*}], priority: %d}\n", b.cgroup, i%8)))
		for range 5 {
			s, err := b.Status(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !s.OK {
				t.Fatalf("after %d changes: %s %v", i+1, s.Verdict, s.Differences)
			}
		}
	}
}
