package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
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
		w.leave()
		_ = w.hangUp()
		_ = w.passed()
		_ = w.watched()
		for _, e := range w.echoes {
			_ = e.Close()
		}
		for _, r := range w.receivers {
			_ = r.Close()
		}
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
	stuffer *Stuffer
	asker   *Asker
	talks   []*Talk
	echoes  []io.Closer
	ways    []*Passage
	vigil   *Vigil

	receivers []*Receiver
}

func (w *worker) follow(ctx context.Context, o order) (a answer) {
	var err error
	switch o.Verb {
	case "send", "flood", "stuff":
		err = w.start(ctx, o)
	case "alternate":
		err = alternate(o)
	case "connect":
		err = w.connect(ctx, o)
	case "ask":
		a.Latency, err = w.ask(ctx, o)
	case "move":
		err = move(o.Cgroup)
	case "talk":
		err = w.talk()
	case "speak":
		a.Spoken, err = Speak(w.talks, Turns{o.Rounds, o.Every, o.Ordinary})
	case "hang up":
		err = w.hangUp()
	case "echo":
		err = w.echo(o)
	case "receive":
		err = w.receive(o)
	case "received":
		a.Received = w.received()
	case "pass":
		err = w.pass(ctx, o)
	case "passed":
		a.Passed = w.passed()
	case "watch":
		_ = w.watched()
		urgent() // who waits for one of its own process would take that for an absence, and the CPU for itself
		w.vigil, err = KeepVigil()
	case "watched":
		a.Absences = w.watched()
	case "resent":
		if w.streams != nil {
			a.Resent = w.streams.Resent()
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
	switch o.Verb {
	case "flood":
		w.flood, err = StartFlood(where, o.Senders, o.Size)
		return err
	case "stuff":
		w.stuffer = Stuff(where, o.Senders, uint64(o.Size))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w.streams, err = Send(ctx, where, o.Senders)
	return err
}

func alternate(o order) error {
	one, err := o.where()
	if err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(o.Other)
	if err != nil {
		return err
	}
	return Alternate(one, Where{To: to}, o.Senders, o.Size, Turns{Rounds: o.Rounds, Slice: o.Every})
}

// connect opens a connection to ask over, in place of the one before.
func (w *worker) connect(ctx context.Context, o order) error {
	where, err := o.where()
	if err != nil {
		return err
	}
	w.leave()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	w.asker, err = Connect(ctx, where)
	return err
}

func (w *worker) ask(ctx context.Context, o order) (Latency, error) {
	if w.asker == nil {
		return Latency{}, errors.New("no connection to ask over")
	}
	urgent()
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

func move(cgroup string) error {
	// 0 is who writes.
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("move into cgroup: %w", err)
	}
	return nil
}

// talk opens a connection of the worker with itself.
func (w *worker) talk() error {
	t, err := OpenTalk()
	if err == nil {
		w.talks = append(w.talks, t)
	}
	return err
}

// echo answers at a port until the worker ends.
func (w *worker) echo(o order) error {
	where, err := o.where()
	if err != nil {
		return err
	}
	urgent()
	e, err := StartEcho("", where.To)
	if err != nil {
		return err
	}
	w.echoes = append(w.echoes, e)
	s, err := Serve("", where.To)
	if err == nil {
		w.echoes = append(w.echoes, s)
	}
	return err
}

func (w *worker) receive(o order) error {
	where, err := o.where()
	if err != nil {
		return err
	}
	r, err := Receive("", where.To)
	if err == nil {
		w.receivers = append(w.receivers, r)
	}
	return err
}

func (w *worker) received() Received {
	all := Received{Each: map[string]uint64{}, At: time.Now().UnixNano()}
	for _, r := range w.receivers {
		one := r.Received()
		all.At, all.Bytes, all.Packets = one.At, all.Bytes+one.Bytes, all.Packets+one.Packets
		maps.Copy(all.Each, one.Each)
	}
	return all
}

func (w *worker) pass(ctx context.Context, o order) error {
	where, err := o.where()
	if err != nil {
		return err
	}
	urgent()
	p, err := StartPassage(ctx, where, o.Every)
	if err == nil {
		w.ways = append(w.ways, p)
	}
	return err
}

func (w *worker) passed() (all []Passed) {
	for _, p := range w.ways {
		all = append(all, p.Stop())
	}
	w.ways = nil
	return all
}

func (w *worker) watched() (away []Absence) {
	if w.vigil != nil {
		away = w.vigil.End()
	}
	w.vigil = nil
	return away
}

func (w *worker) hangUp() (err error) {
	for _, t := range w.talks {
		err = errors.Join(err, t.Close())
	}
	w.talks = nil
	return err
}

// leave closes the connection to ask over.
func (w *worker) leave() {
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
	case w.stuffer != nil:
		sent, err = w.stuffer.Stop()
	}
	w.streams, w.flood, w.stuffer = nil, nil, nil
	return sent, err
}
