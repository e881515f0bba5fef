package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Requests says how to ask a Server.
type Requests struct {
	Size  int           // bytes of a request and of its answer
	Every time.Duration // from one request to the next; 0: as soon as it is answered
	For   time.Duration // how long to ask
}

// Ask sends requests over one connection, one at a time, and returns their
// latencies in nanoseconds, with three digits that count.
func Ask(ctx context.Context, w Where, r Requests) (*hdrhistogram.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := w.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write([]byte{verbEcho}); err != nil {
		return nil, fmt.Errorf("ask %s: %w", w.To, err)
	}
	latencies := hdrhistogram.New(1_000, int64(limit), 3)
	data := make([]byte, max(r.Size, 1))
	end := time.Now().Add(min(r.For, limit))
	// Requests that take longer than Every are late, and fewer.
	for next := time.Now(); next.Before(end) && time.Now().Before(end); next = next.Add(r.Every) {
		if !sleep(ctx, time.Until(next)) {
			return nil, fmt.Errorf("ask %s: %w", w.To, context.Cause(ctx))
		}
		start := time.Now()
		if _, err = conn.Write(data); err == nil {
			_, err = io.ReadFull(conn, data)
		}
		if err != nil {
			return nil, fmt.Errorf("ask %s: %w", w.To, errors.Join(context.Cause(ctx), err))
		}
		if err := latencies.RecordValue(int64(time.Since(start))); err != nil {
			return nil, fmt.Errorf("record latency: %w", err)
		}
	}
	return latencies, nil
}

// Latency sums up how long requests took, from the writing until the answer was read.
type Latency struct {
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	N   int64         `json:"n"` // requests
}

// sleep waits and reports whether the time passed before the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
