package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Requests says how to ask a Server.
type Requests struct {
	Size  int           // bytes of a request and of its answer
	Every time.Duration // from one request to the next
	For   time.Duration // how long to ask
}

// N is how many requests that are.
func (r Requests) N() int { return int((r.For + r.Every - 1) / r.Every) }

// An Asker is a connection to a Server that answers.
type Asker struct {
	conn *net.TCPConn
	to   netip.AddrPort
}

// Connect opens a connection to ask over. Close closes it.
func Connect(ctx context.Context, w Where) (*Asker, error) {
	conn, err := w.dial(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte{verbEcho}); err != nil {
		return nil, errors.Join(fmt.Errorf("ask %s: %w", w.To, err), conn.Close())
	}
	return &Asker{conn, w.To}, nil
}

// Close closes the connection.
func (a *Asker) Close() error { return a.conn.Close() }

// Ask connects and asks once.
func Ask(ctx context.Context, w Where, r Requests) (*hdrhistogram.Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a, err := Connect(ctx, w)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return a.Ask(ctx, r)
}

// Ask sends requests, waits for the answers to all of them, and returns their
// latencies in nanoseconds, with three digits that count. A request goes out when
// it is due, though those before it may be unanswered, and its latency counts from
// then: were it to wait for them, or counted from when it could be sent, a stall
// would be seen once, however many requests it held up. After an error the
// connection is of no use.
func (a *Asker) Ask(ctx context.Context, r Requests) (*hdrhistogram.Histogram, error) {
	if r.Every <= 0 {
		return nil, fmt.Errorf("ask %s: %s from one request to the next", a.to, r.Every)
	}
	ctx, expire := context.WithTimeout(ctx, limit)
	defer expire()
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(ctx, func() { _ = a.conn.SetDeadline(time.Unix(1, 0)) })()
	begin := time.Now()
	var sender sync.WaitGroup
	sender.Go(func() {
		if err := a.send(ctx, r, begin); err != nil {
			cancel(err)
		}
	})
	var latencies *hdrhistogram.Histogram
	var err error
	sender.Go(func() {
		if latencies, err = a.receive(r, begin); err != nil {
			cancel(err)
		}
	})
	sender.Wait()
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", a.to, context.Cause(ctx))
	}
	return latencies, nil
}

func (a *Asker) send(ctx context.Context, r Requests, begin time.Time) error {
	due, err := newAlarm(ctx)
	if err != nil {
		return fmt.Errorf("a timer: %w", err)
	}
	data := make([]byte, max(r.Size, 1))
	for i := range r.N() {
		if !due.at(r.due(i, begin)) {
			return context.Cause(ctx)
		}
		if _, err := a.conn.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func (a *Asker) receive(r Requests, begin time.Time) (*hdrhistogram.Histogram, error) {
	latencies := hdrhistogram.New(1_000, int64(2*limit), 3)
	in, err := newPrompt(a.conn)
	if err != nil {
		return nil, err
	}
	data := make([]byte, max(r.Size, 1))
	for i := range r.N() {
		if _, err := io.ReadFull(in, data); err != nil {
			return nil, err
		}
		if err := latencies.RecordValue(int64(time.Since(r.due(i, begin)))); err != nil {
			return nil, fmt.Errorf("record latency: %w", err)
		}
	}
	return latencies, nil
}

// due is when a request has to go out, the first at once.
func (r Requests) due(i int, begin time.Time) time.Time {
	return begin.Add(time.Duration(i) * r.Every)
}

// Latency sums up how long requests took, from when each was due until its answer
// was read.
type Latency struct {
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	N   int64         `json:"n"` // requests
}
