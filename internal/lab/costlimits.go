package lab

import (
	"context"
	"net/netip"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
	"github.com/weir-net/weir/internal/policy"
)

// limitedPackets is how many packets a second pass a limit that has room for ten times as many.
const limitedPackets = 100_000

// limitPrefix is before the names of the limiters lab's arms.
const limitPrefix = "limit_"

// A limitedRoute leads through the second host to one behind it. The loop's CPU passes packets on there, and receives them
// there, and so it is the loop that pays for a limit on them.
type limitedRoute struct {
	limiter
	behind hosts.Plug
	sink   traffic.Where
}

// route builds it behind the second host.
func (l *costLab) route() error {
	host, err := l.net.Host("behind")
	if err != nil {
		return err
	}
	out := plug(l.far.Host, "out", "10.99.9.1/24", "fd99:9::1/64")
	r := &limitedRoute{
		limiter: limiter{session: l.session, line: out, match: "port: 5203, protocol: udp", absent: map[string]string{}},
		behind:  plug(host, "in", "10.99.9.2/24", "fd99:9::2/64"),
	}
	l.limited = r
	if err := hosts.Wire(out, r.behind, hosts.Segments(uint64(l.Rate))); err != nil {
		return err
	}
	if err := l.far.Host.Forward(); err != nil {
		return err
	}
	if err := l.line.Host.Route(netip.MustParsePrefix("10.99.9.0/24"), l.far.Addresses[0].Addr()); err != nil {
		return err
	}
	r.sink = l.at(r.behind, 5203)
	sink, err := traffic.OpenSink(host.Netns(), r.sink.To)
	_, err = closing(l.session, sink, err)
	return err
}

// limits has the loop compute beside packets that are passed on below a limit, by each of the means that this
// kernel has.
func (l *costLab) limits(ctx context.Context, repetition int) error {
	limit := policy.Rate(10 * limitedPackets * frame * 8)
	to := l.limited.sink
	to.Pace = limitedPackets * meteredSize * 8
	for _, arm := range l.limited.order(repetition) {
		l.progress("repetition %d of %d: packets that are passed on, limit: %s", repetition, l.Repetitions, arm)
		err := l.limited.under(ctx, arm, limit, func() error {
			return l.beside(ctx, limitPrefix+arm, l.limited.behind, func() error { return l.sender.Flood(ctx, to, 1, meteredSize) })
		})
		if err := l.limited.unlessLacking(arm, repetition, err); err != nil {
			return err
		}
	}
	return nil
}

// limitWarnings says what this kernel lacks.
func (l *costLab) limitWarnings() {
	for _, arm := range limitersInfo.Arms {
		if why := l.limited.absent[arm]; why != "" {
			l.warn("arm %s%s is absent: %s", limitPrefix, arm, why)
		}
	}
	if l.limited.leaf == hosts.OneFIFO {
		l.warn("arms %sifb_htb and %shtb: HTB over one FIFO: this kernel has no fq_codel", limitPrefix, limitPrefix)
	}
}

func limitArms() (arms []string) {
	for _, arm := range limitersInfo.Arms {
		arms = append(arms, limitPrefix+arm)
	}
	return arms
}

// perPacket is what each packet takes from the loop, ns.
func perPacket(stolenPercent, packetsPerSecond float64) float64 {
	if packetsPerSecond < 1 {
		return 0
	}
	return stolenPercent / 100 / packetsPerSecond * 1e9
}
