package tc

import (
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// Sizes in bytes and times in microseconds of what Weir builds for a rate.
const (
	frame      = 1518
	gsoPacket  = 64 << 10
	gsoWire    = 80 << 10      // such a packet with the headers of its segments, down to an MSS of 280
	bandwidth1 = 1_000_000 / 8 // byte/s of 1 Mbit/s

	// unshapedLimit bounds a leaf where the device is the bottleneck and its
	// rate is not known here: 8 ms of 1 Gbit/s, 80 ms of 100 Mbit/s.
	unshapedLimit = 1 << 20
)

// floorRate is the guaranteed rate of every HTB leaf in byte/s. HTB serves what
// is within its own rate before anything that borrows, whatever its prio, so
// this is what a more urgent class can not take: it has to be as good as
// nothing. HTB refuses 0. A hundred-thousandth of the rate, at most 1 kbit/s
// (a full frame in 12 s), leaves eight classes less than a ten-thousandth; the
// buckets of a class divide it. (HTB forgives debts after a minute, so that even
// a leaf of 64 KiB packets moves one a minute.)
func floorRate(rate uint64, buckets int) uint64 {
	return max(min(rate/100_000, 1000/8)/uint64(buckets), 1)
}

// floorBurst is one frame: HTB lets a class send a packet of any size while it
// has a token left, and a larger burst would be taken from the urgent classes.
const floorBurst = frame

// burst is the burst of the shaper in bytes: two milliseconds of the rate,
// because a timer may come that late and what is not sent by then is lost; a
// whole GSO packet where that is not more than ten milliseconds; never less
// than two frames. At 100 Mbit/s it is 64 KiB, that is 5 ms.
func burst(rate uint64) uint64 {
	return max(rate*2/1000, min(gsoPacket, rate/100), 2*frame)
}

// quantumBase is the quantum of an HTB class, one GSO packet; only classes of the
// same prio take turns by it: the leaves of a plan class, and those of the shares
// that borrow as it does, which have the same. Its lower 16 bits are free to say
// which priorities the class carries (see [quantumOf]).
const quantumBase = gsoPacket

// bucketQuantum is what a bucket may send before it is the next one's turn. It
// must not be less than any packet that the bucket can hold: HTB adds it once
// a turn, however deep the packet took the bucket into debt, so that buckets
// would take turns by packets, the flow with the larger ones would have more, and the debt
// would grow until the kernel's counter of 31 bits turns over. That is gsoWire, or what
// the bfifo can hold. More would only make the others wait longer.
func bucketQuantum(rate uint64) uint32 { return min(gsoWire, bucketLimit(rate)) }

// limit is the bound of a bfifo leaf: 20 ms of the rate. Where 64 KiB packets
// are at home (from 50 Mbit/s on) it takes two of them, and from 5 Mbit/s on it takes
// one: a flow whose round trips were microseconds so far sends such packets on slow
// lines too, and where none fits, BBR learns nothing better for as long as it lives.
// Below, sixteen frames.
func limit(rate uint64) uint32 {
	switch {
	case rate == 0:
		return unshapedLimit
	case rate >= 50*bandwidth1:
		return uint32(max(rate/50, 2*gsoPacket))
	case rate >= 5*bandwidth1:
		return uint32(max(rate/50, gsoWire))
	}
	return uint32(max(rate/50, 16*frame))
}

// bucketLimit is the bound of the bfifo leaf that is one bucket: half of a whole
// class's, as one flow can fill the line with less, but not less than two GSO
// packets where the class has them. So a class whose buckets all stand full, of
// forwarded or unreliable traffic, holds four times that of one without; local TCP keeps
// to a packet or two a flow, and a flow that sends little waits for one
// quantum of each other bucket and not for all that they hold.
func bucketLimit(rate uint64) uint32 { return max(limit(rate)/2, min(limit(rate), 2*gsoPacket)) }

// codelTimes are target and interval of an fq_codel leaf in microseconds: the
// kernel's 5 ms and 100 ms, stretched at low rates, where one and a half frames
// take longer than 5 ms and would be taken for a standing queue.
func codelTimes(rate uint64) (target, interval uint32) {
	const usual, wide = 5000, 100_000
	target = usual
	if rate > 0 {
		target = max(usual, uint32(1_500_000*frame/rate))
	}
	return target, wide + target - usual
}

// turn is what a flow of an fq_codel leaf may send before it is the next one's turn. A flow
// that has run empty goes ahead of the others again only when all of them had a turn since; so
// what sends little waits for a round at times. Turns of a whole frame make that as many
// frames as there are flows, 4 ms of 100 Mbit/s with 32; smaller ones let those flows by which
// still save for their next packet, and share bytes as evenly. They cost a look at each flow,
// so a turn takes 24 us at least where it is not a frame, which is the kernel's own.
func turn(rate uint64) uint32 {
	const least, wide = 300, 1514
	if rate == 0 {
		return wide
	}
	return uint32(min(max(rate*24/1_000_000, least), wide))
}

// quantumOf is the quantum of one leaf of class c. HTB has no place for the map
// of priorities, which the egress program applies, and Weir no database beside
// the kernel; so the quanta keep the map: bit p of the class's 16 is set where
// priority p goes to it. Buckets must have like quanta, so each keeps its part
// of the 16 bits, two of eight buckets' each.
func quantumOf(q plan.Queue, rate uint64, c, bucket int) uint32 {
	base, bits := uint32(quantumBase), mapBits(q.Leaves())
	if q.Leaves() > 1 {
		base = (bucketQuantum(rate) + 1<<bits - 1) &^ (1<<bits - 1)
	}
	var set uint32
	for p, class := range q.Map {
		if int(class) == c {
			set |= 1 << p
		}
	}
	return base | set>>(bucket*bits)&(1<<bits-1)
}

// mapBits is how many bits of the map each bucket keeps in its quantum.
func mapBits(buckets int) int { return policy.Levels / buckets }
