package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// WorkerMain is the main function of a worker: it follows orders, one JSON
// object a line, until its input ends, and returns the exit status.
func WorkerMain(stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := worker{out: json.NewEncoder(stdout)}
	defer func() {
		_, _ = w.stop() // nobody is left to tell
		w.hangUp()
	}()
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			fmt.Fprintf(stderr, "traffic worker: read order: %v\n", err)
			return 1
		}
		if err := w.out.Encode(w.follow(ctx, o)); err != nil {
			return 1 // nobody is left to tell
		}
	}
	return 0
}

type worker struct {
	out     *json.Encoder
	streams *Streams
	flood   *Flood
	asker   *Asker
}

func (w *worker) follow(ctx context.Context, o order) (a answer) {
	var err error
	switch o.Verb {
	case "send", "flood":
		err = w.start(ctx, o)
	case "connect":
		err = w.connect(ctx, o)
	case "ask":
		a.Latency, err = w.ask(ctx, o)
	case "retransmits":
		if w.streams != nil {
			a.Retransmits = w.streams.Retransmits()
		}
	case "stop":
		a.Sent, err = w.stop()
	default:
		err = fmt.Errorf("unknown order %q", o.Verb)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

func (o order) where() (Where, error) {
	to, err := netip.ParseAddrPort(o.To)
	return Where{To: to, Congestion: o.Congestion, Pace: o.Pace}, err
}

// start begins to send, in place of what is being sent.
func (w *worker) start(ctx context.Context, o order) error {
	where, err := o.where()
	if err != nil {
		return err
	}
	if _, err := w.stop(); err != nil {
		return err
	}
	if o.Verb == "flood" {
		w.flood, err = StartFlood(where, o.Senders, o.Size)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w.streams, err = Send(ctx, where, o.Senders)
	return err
}

// connect opens a connection to ask over, in place of the one before.
func (w *worker) connect(ctx context.Context, o order) error {
	where, err := o.where()
	if err != nil {
		return err
	}
	w.hangUp()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w.asker, err = Connect(ctx, where)
	return err
}

func (w *worker) ask(ctx context.Context, o order) (Latency, error) {
	if w.asker == nil {
		return Latency{}, errors.New("no connection to ask over")
	}
	latencies, err := w.asker.Ask(ctx, Requests{Size: o.Size, Every: o.Every, For: o.For})
	if err != nil {
		return Latency{}, err
	}
	return Latency{
		P50: time.Duration(latencies.ValueAtQuantile(50)),
		P99: time.Duration(latencies.ValueAtQuantile(99)),
		N:   latencies.TotalCount(),
	}, nil
}

func (w *worker) hangUp() {
	if w.asker != nil {
		_ = w.asker.Close() // all that it was for has been answered
		w.asker = nil
	}
}

func (w *worker) stop() (sent uint64, err error) {
	switch {
	case w.streams != nil:
		sent = w.streams.Stop()
	case w.flood != nil:
		sent, err = w.flood.Stop()
	}
	w.streams, w.flood = nil, nil
	return sent, err
}
