package fair

// The time for which a bucket collects its rate, ns, where nobody says otherwise: that of datagrams two full frames
// beside. One packet of any size passes on top of it, and what is left of a chunk.
const (
	Burst = 10_000_000
	// StreamBurst is that of the bucket for TCP that nobody paces: a sender that waits
	// for its timer of 200 ms, which the kernel's clock may round up by some, finds what it could have sent meanwhile.
	StreamBurst = 22 * Burst
)

// depth is for how long the bucket of datagrams collects below a limit, ns. Who sends a little more than its share comes
// late by up to what a frame takes of that, which must not be lost; beside one flow its share is half the limit.
func depth(limit uint64) uint64 { return Burst + 2*Segment*second/limit }

// MaxDepth is the longest time for which a bucket may collect, ns: two days.
const MaxDepth = 1 << 47

// sliceOf is the time's worth of the share that a bucket gives each of so many CPUs at once, ns: together
// no more than a quarter of what it collects.
func sliceOf(depth, cpus uint64) uint64 { return min(depth, Burst) / 4 / cpus }

// Fraction is the fixed point of a bucket's time: 1/16 ns, as at 100 Gbit/s a byte
// takes 0.08.
const Fraction = 16

// Bucket is a token bucket for what can not be paced: all datagrams of a workload
// are one flow of weight 1, and so is all TCP that nobody paces. A new one is full.
type Bucket struct {
	Depth uint64 // the time for which it collects its rate, ns; up to [MaxDepth]
	Slice uint64 // the time's worth of its rate that it gives a CPU at once, ns

	paid   uint64 // until when what has passed is paid, ns times Fraction
	credit uint64 // bytes that are paid and charged, and still to come: the packets of a bucket here are one CPU's
}

// Conforms says whether a packet of so many bytes may pass now, in ns, at a
// budget's price, and charges it if so.
func (k *Bucket) Conforms(now, wire, price uint64) bool {
	from := max(k.paid, (now-min(k.Depth, now))*Fraction)
	if from > now*Fraction {
		return false
	}
	k.paid = from + wire*price/One
	return true
}

// Prepaid says whether a packet of so many bytes is of a chunk that was paid and
// charged before, and takes it from there.
func (k *Bucket) Prepaid(wire uint64) bool {
	if k.credit < wire {
		return false
	}
	k.credit -= wire
	return true
}

// Grant pays a chunk of the bucket at once, if it is fuller than half now, in ns, so
// that the packets to come need no look at the clock. It returns the bytes that the
// flow prepays ([Budget.Prepay]), at most a chunk of a budget.
func (k *Bucket) Grant(now, chunk uint64) uint64 {
	if k.paid > (now-min(k.Depth/2, now))*Fraction {
		return 0
	}
	k.paid += k.Slice * Fraction
	k.credit += chunk
	return chunk
}

// price is what One bytes cost at a rate in bytes per second, in ns times
// Fraction, rounded up: with it a packet is charged without a division.
func price(rate uint64) uint64 { return second*Fraction*One/max(rate, 1) + 1 }
