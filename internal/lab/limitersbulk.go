package lab

import (
	"context"
	"time"

	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/report"
)

// bulk is the streams whose limit is the lab's rate.
var bulk = []struct {
	suffix  string // of their metrics
	streams int
}{{"", 32}, {"_1", 1}}

const (
	// bulkSettle is how long streams run before they are measured: nobody competes,
	// and a limit is found within 300 ms.
	bulkSettle = 400 * time.Millisecond
	// bulkWindow is how long they are measured.
	bulkWindow = 600 * time.Millisecond
	// idleWindow is how long requests alone are.
	idleWindow = 200 * time.Millisecond
)

// requests are 48 bytes every 2 ms: half a megabit per second of the limit.
var requests = traffic.Requests{Size: 48, Every: 2 * time.Millisecond}

// bulk runs streams and, beside them in the same limit, requests. Without one they
// would compete for nothing but the CPUs.
func (l *limitersLab) bulk(ctx context.Context, arm string, repetition int, suffix string, streams int) error {
	if err := l.sender.Send(ctx, l.toServer, streams); err != nil {
		return err
	}
	if err := pause(ctx, bulkSettle); err != nil {
		return err
	}
	recorder := traffic.Record(sampling, l.wire())
	start := time.Now()
	var latency traffic.Latency
	var err error
	if arm == "none" {
		err = pause(ctx, bulkWindow)
	} else {
		latency, err = l.asker.Ask(ctx, l.toServer, during(bulkWindow))
	}
	end := time.Now()
	trace := recorder.Stop()[0]
	if err != nil {
		return err
	}
	again, err := l.sender.Retransmits(ctx)
	if err != nil {
		return err
	}
	l.measured(arm, "mbit"+suffix, "Mbit/s", trace.Mbit(start, end))
	l.measured(arm, "retransmits"+suffix, "", float64(again))
	if arm != "none" {
		l.measured(arm, "rr_p99_ms"+suffix, "ms", latency.P99.Seconds()*1e3)
		// Its streams would leave the others no room on the scale.
		l.result.Series = append(l.result.Series, report.Series{
			Plot: plotBulk[suffix], Name: arm, Arm: arm, Repetition: repetition, Unit: "Mbit/s", Samples: trace.Rates(start, start, end),
		})
	}
	_, err = l.sender.Stop(ctx)
	return err
}

// wire counts the bytes that arrive from now on, as a real line would carry them.
// The device counts one header for all segments of a packet, a limit one for each.
func (l *limitersLab) wire() func() uint64 {
	const headers = 1514 - segment
	packets, bytes, _ := l.far.Received() // the device is there until the lab ends
	segments := l.server.Segments()
	return func() uint64 {
		p, b, _ := l.far.Received()
		uncounted := int64(l.server.Segments()-segments) - int64(p-packets)
		return uint64(max(0, int64(b-bytes)+headers*uncounted))
	}
}

// during asks for a time.
func during(d time.Duration) traffic.Requests {
	r := requests
	r.For = d
	return r
}

var plotBulk = map[string]string{
	"":   "Bulk TCP of 32 flows under the limit",
	"_1": "Bulk TCP of one flow under the limit",
}
