package fair

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestOffers: who begins alone is offered ten segments, those that begin together less, and once the limit has brought
// what was offered it is ten again.
func TestOffers(t *testing.T) {
	const limit = 10e6 / 8
	var o Offers
	all := map[uint64]int{}
	for range 32 {
		all[o.Segments(second, limit, StreamBurst)]++
	}
	if all[offerMost] != 4 || all[offerLeast] != 27 {
		t.Errorf("32 that begin at once are offered, by segments: %v", all)
	}
	for _, c := range []struct{ after, want uint64 }{{66e6, 2}, {70e6, 4}, {74e6, 7}, {78e6, 10}, {second, 10}} {
		o := o
		if got := o.Segments(second+c.after, limit, StreamBurst); got != c.want {
			t.Errorf("%d ms later one is offered %d segments, want %d", c.after/1e6, got, c.want)
		}
	}
}

// TestOffersFitTheBucket: whenever handshakes come, a bucket lets through all that they offer, where two
// segments of each fit into half of it.
func TestOffersFitTheBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(1e6/8, MaxLimit).Draw(t, "limit")
		k, o := Bucket{Depth: StreamBurst}, Offers{}
		fit := StreamBurst / 2 * limit / second / (offerLeast * Segment)
		now := uint64(second)
		for n := range rapid.Uint64Range(0, min(fit, 200)).Draw(t, "handshakes") {
			now += rapid.Uint64Range(0, 10e6).Draw(t, "pause")
			for i := range o.Segments(now, limit, StreamBurst) {
				if !k.Conforms(now, Segment, price(limit)) {
					t.Fatalf("segment %d of connection %d is lost", i, n)
				}
			}
		}
	})
}

// TestBeginTogether: connections that begin together, and whose answers wait, lose nothing of what they were offered with
// their handshakes, where they would lose a good part of ten segments each.
func TestBeginTogether(t *testing.T) {
	for _, c := range []struct {
		n     int
		limit uint64 // bytes/s
		lost  bool   // some of ten segments each would be
	}{
		{8, 10e6 / 8, false}, {32, 10e6 / 8, true}, {45, 10e6 / 8, true}, {200, 100e6 / 8, true}, {32, 100e6 / 8, false},
	} {
		lost := func(offer func(*Offers) uint64) (segments int) {
			k, o := Bucket{Depth: StreamBurst}, Offers{}
			for range c.n {
				for range offer(&o) {
					if !k.Conforms(second, Segment, price(c.limit)) {
						segments++
					}
				}
			}
			return segments
		}
		t.Run(fmt.Sprintf("%d below %d Mbit/s", c.n, c.limit*8/1e6), func(t *testing.T) {
			ten := lost(func(*Offers) uint64 { return offerMost })
			got := lost(func(o *Offers) uint64 { return o.Segments(second, c.limit, StreamBurst) })
			t.Logf("of ten segments each %d are lost, of what is offered %d", ten, got)
			if got != 0 || (ten > 0) != c.lost {
				t.Errorf("of ten segments each %d are lost, of what is offered %d", ten, got)
			}
		})
	}
}
