package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/report"
	"github.com/weir-net/weir/internal/workload"
)

const (
	// stuffTime is how long connections are stuffed, from the first one on. What they hold is
	// read again and again, which takes a CPU milliseconds where there are many.
	stuffTime = time.Second
	// calmTime is how long they are let alone then; what they hold is read at its end.
	calmTime = 800 * time.Millisecond
)

// neighbourRequests are what the neighbour asks meanwhile.
var neighbourRequests = traffic.Requests{Size: 48, Every: 2 * time.Millisecond, For: calmTime}

// neighbourStreams is how many flows the neighbour sends with.
const neighbourStreams = 4

// fitHost keeps the lab from what it shows: what the connections write without a bound may
// not bring the host near its own limits. Where too little is left for them to pass the
// bound there is no such stuffing.
func (l *memoryLab) fitHost() error {
	tcp, err := workload.TCPMemory()
	if err != nil {
		return err
	}
	free, err := memAvailable()
	if err != nil {
		return err
	}
	room := free / 4
	if tcp.Known() {
		l.pressure = tcp.Pressure
		room = min(room, tcp.Pressure-min(tcp.Used, tcp.Pressure))
		room -= room / 3 // what is written takes a fifth more
	}
	l.fit(room)
	return nil
}

// fit divides so many bytes among the connections of each stuffing.
func (l *memoryLab) fit(room uint64) {
	for i := range l.loads {
		s := &l.loads[i]
		s.each = min(s.each, room/uint64(s.connections))
		if all := s.each * uint64(s.connections); all < 2*uint64(s.max) {
			s.left = fmt.Sprintf("%d connections may take no more than %.0f MB of this host, without harm to others; twice the bound of %s would be needed",
				s.connections, float64(all)/1e6, s.max)
			l.warn("%s", s.left)
		}
	}
}

// memAvailable is what the host could give to others, in bytes.
func memAvailable() (uint64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("read free memory: %w", err)
	}
	_, rest, _ := bytes.Cut(text, []byte("MemAvailable:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("read free memory: /proc/meminfo has no MemAvailable")
	}
	kilobytes, err := strconv.ParseUint(string(fields[0]), 10, 54)
	if err != nil {
		return 0, fmt.Errorf("read free memory: %w", err)
	}
	return kilobytes << 10, nil
}

// arm makes one arm once: each of the stuffings, or none.
func (l *memoryLab) arm(ctx context.Context, arm string, repetition int) error {
	if arm == "alone" {
		return l.beside(ctx, arm, stuffing{}, repetition)
	}
	for _, s := range l.loads {
		if s.left != "" {
			continue
		}
		if arm == "bounded" {
			if err := l.apply(ctx, bounded{"stuffed", l.stuffed, s.bound()}); err != nil {
				return err
			}
		}
		if err := errors.Join(l.beside(ctx, arm, s, repetition), l.reset(ctx)); err != nil {
			return fmt.Errorf("%d connections: %w", s.connections, err)
		}
	}
	return nil
}

// beside measures the neighbour, and beside it what stuffed connections hold.
func (l *memoryLab) beside(ctx context.Context, arm string, s stuffing, repetition int) error {
	if err := l.sender.Send(ctx, l.toServer, neighbourStreams); err != nil {
		return err
	}
	if err := l.asker.Connect(ctx, l.toAsked); err != nil {
		return err
	}
	if err := pause(ctx, settle); err != nil {
		return err
	}
	w, err := l.watchMemory(ctx, s)
	if err != nil {
		return err
	}
	l.note(arm, s, w)
	if s.connections > 0 {
		l.result.Series = append(l.result.Series, report.Series{
			Plot: l.plot(s), Name: arm, Arm: arm, Repetition: repetition, Unit: "MB", Samples: w.held,
		})
	}
	return l.clear(ctx)
}

// plot is the heading of what a stuffing holds over time.
func (l *memoryLab) plot(s stuffing) string {
	return fmt.Sprintf("TCP memory of %d connections whose peers never read; the bound is %.1f MB", s.connections, float64(s.max)/1e6)
}

// A watched is what happened in a window.
type watched struct {
	held        [][2]float64 // seconds since the first connection, MB
	peak        uint64       // bytes
	host        uint64       // the most that all TCP of the host held, bytes
	connections int
	mbit        float64
	latency     traffic.Latency
}

// note keeps the figures of a window.
func (l *memoryLab) note(arm string, s stuffing, w watched) {
	if s.connections > 0 {
		l.measured(arm, "tcp_memory_bytes"+s.suffix, "B", float64(w.peak))
		l.measured(arm, "connections"+s.suffix, "", float64(w.connections))
		if l.pressure > 0 {
			l.measured(arm, "host_pressure"+s.suffix, "%", 100*float64(w.host)/float64(l.pressure))
		}
	}
	l.measured(arm, "neighbour_mbit"+s.suffix, "Mbit/s", w.mbit)
	l.measured(arm, "neighbour_rr_ms"+s.suffix, "ms", w.latency.P50.Seconds()*1e3)
	l.measured(arm, "neighbour_rr_p99_ms"+s.suffix, "ms", w.latency.P99.Seconds()*1e3)
}

// watchMemory begins to stuff and looks on.
func (l *memoryLab) watchMemory(ctx context.Context, s stuffing) (w watched, err error) {
	recorder := traffic.Record(sampling, func() uint64 {
		_, bytes, _ := l.far.Received() // the device is there until the lab ends
		return bytes
	})
	start := time.Now()
	if s.connections > 0 {
		err = l.stuffer.Stuff(ctx, l.toDeaf, s.connections, int(s.each))
	}
	if err == nil {
		err = l.readMemory(ctx, start, stuffTime, &w)
	}
	if err == nil {
		w.latency, err = l.asker.Ask(ctx, neighbourRequests)
	}
	end := time.Now()
	w.mbit = recorder.Stop()[0].Mbit(start, end)
	if err == nil {
		err = l.readMemory(ctx, start, 0, &w)
	}
	w.connections = l.deaf.Connections()
	return w, err
}

// readMemory reads what the stuffed connections hold, once and then until so much time has
// passed.
func (l *memoryLab) readMemory(ctx context.Context, start time.Time, span time.Duration, w *watched) error {
	return host.InNetns(l.line.Host.Netns(), func() error {
		for {
			held, err := l.held(ctx)
			if err != nil {
				return err
			}
			all, err := workload.TCPMemory()
			if err != nil {
				return err
			}
			w.peak, w.host = max(w.peak, held), max(w.host, all.Used)
			w.held = append(w.held, [2]float64{time.Since(start).Seconds(), float64(held) / 1e6})
			if time.Since(start) >= span {
				return nil
			}
			if err := pause(ctx, sampling); err != nil {
				return err
			}
		}
	})
}

// held sums up what the sockets of the stuffed connections hold, as weir sockets has it.
func (l *memoryLab) held(ctx context.Context) (bytes uint64, err error) {
	sockets, err := workload.TCPSockets(ctx)
	for _, s := range sockets {
		if s.Remote == l.toDeaf.To {
			bytes += s.Memory.Held()
		}
	}
	return bytes, err
}

// clear ends what all do and waits until nothing is held any more.
func (l *memoryLab) clear(ctx context.Context) error {
	_, stopped := l.sender.Stop(ctx)
	_, emptied := l.stuffer.Stop(ctx)
	if err := errors.Join(stopped, emptied, l.deaf.Reset()); err != nil {
		return err
	}
	return host.InNetns(l.line.Host.Netns(), func() error {
		for deadline := time.Now().Add(5 * time.Second); ; {
			held, err := l.held(ctx)
			if held == 0 || err != nil {
				return err
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%d bytes of TCP memory are still held after their connections", held)
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	})
}
