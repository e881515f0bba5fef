package fair

// Burst is the time for which a bucket collects its rate, ns. One packet of any
// size passes on top of it.
const Burst = 10_000_000

// fraction is the fixed point of a bucket's time: 1/16 ns, as at 100 Gbit/s a byte
// takes 0.08.
const fraction = 16

// Bucket is a token bucket for what can not be paced: all datagrams of a workload
// are one flow of weight 1. The zero value is full.
type Bucket struct {
	paid uint64 // until when what has passed is paid, ns times fraction
}

// Conforms says whether a packet of so many bytes may pass now, in ns, at a share
// in bytes per second, and charges it if so.
func (k *Bucket) Conforms(now, wire, share uint64) bool {
	from := max(k.paid, (now-min(Burst, now))*fraction)
	if from > now*fraction {
		return false
	}
	k.paid = from + wire*second*fraction/max(share, 1) + 1
	return true
}
