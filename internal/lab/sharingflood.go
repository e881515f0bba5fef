package lab

import (
	"context"
	"errors"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
)

// fullDatagram is the payload of a datagram whose frame is as long as a full
// segment's.
const fullDatagram = datagram + 1514 - frame

// overflow is how many times the line's rate the flood offers, where its sockets need
// not wait for room. As much as this host can would take the CPUs from the others, and
// not the line alone.
const overflow = 4

// flood measures the others' TCP beside UDP of the small workload, from as many
// sockets as it has flows otherwise.
func (l *sharingLab) flood(ctx context.Context, arm string) error {
	err := errors.Join(l.send(ctx, middle), l.send(ctx, large))
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := l.flows[small].worker.Flood(ctx, l.toSink, sharers[small].flows, fullDatagram); err != nil {
		return err
	}
	if err := pause(ctx, l.beat/2); err != nil {
		return err
	}
	recorder := traffic.Record(sampling, l.counters()...)
	start := time.Now()
	err = pause(ctx, l.beat)
	end := time.Now()
	arrived := recorder.Stop()
	if err != nil {
		return err
	}
	sent, err := l.flows[small].worker.Stop(ctx)
	offered := float64(sent) * 1514 * 8 / 1e6 / time.Since(begin).Seconds()
	flood := arrived[everybody].Mbit(start, end)
	for _, who := range []int{middle, large} {
		mbit := arrived[who].Mbit(start, end)
		l.measured(arm, sharers[who].name+"_beside_flood_mbit", "Mbit/s", mbit)
		flood -= mbit
	}
	l.measured(arm, "flood_mbit", "Mbit/s", flood)
	l.measured(arm, "flood_offered_mbit", "Mbit/s", offered)
	return errors.Join(err, l.stop(ctx))
}
