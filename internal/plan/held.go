package plan

import (
	"fmt"

	"github.com/weir-net/weir/internal/policy"
)

// Held is what became of the packets below one limit, since it was given or an apply
// changed it.
type Held struct {
	Passed          uint64 // bytes on the wire, or packets
	Dropped, Marked uint64 // packets: above the limit, or close to it and told so by ECN
	Last, Most      uint64 // bits or packets a second, over the last whole LimitWindow, and over the busiest one
	Streams         bool   // TCP that nobody paces was let through in that window, or later
}

// words puts into words how close they came to a limit of bandwidth or of packets.
func (h Held) words(packets bool) string {
	if h.Passed+h.Dropped == 0 {
		return "no packet yet"
	}
	rate := func(n uint64) string {
		if packets {
			return policy.PacketRate(threeDigits(n)).String()
		}
		return policy.Rate(threeDigits(n)).String()
	}
	text := fmt.Sprintf("%s in the last %g s, %s in the busiest; ", rate(h.Last), LimitWindow.Seconds(), rate(h.Most))
	if h.Most == 0 {
		text = fmt.Sprintf("not measured for %g s yet; ", LimitWindow.Seconds())
	}
	if h.Dropped+h.Marked == 0 {
		return text + "no packet dropped or marked"
	}
	return text + fmt.Sprintf("%d packets dropped, %d marked", h.Dropped, h.Marked)
}

// threeDigits rounds a rate for reading.
func threeDigits[R ~uint64](r R) R {
	unit := R(1)
	for r/unit >= 1000 {
		unit *= 10
	}
	return (r + unit/2) / unit * unit
}
