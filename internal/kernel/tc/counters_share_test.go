package tc

import (
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestSharePlacement sends to each leaf of each share: what is sent is counted
// there, by tc too, and nowhere else.
func TestSharePlacement(t *testing.T) {
	for _, name := range []string{"htb shares", "htb share buckets"} {
		t.Run(name, func(t *testing.T) {
			q := caseNamed(t, name)
			link, _ := wire(t, 1)
			apply(t, link, q)
			for n := range q.Shares {
				for b := range q.Leaves() {
					sharePlaced(t, link, q, n, b)
				}
			}
		})
	}
}

func sharePlaced(t *testing.T, link testutil.End, q plan.Queue, n, bucket int) {
	t.Helper()
	const packets = 5
	before, leaves := countAll(t, link), tcCounters(t, link, "qdisc")
	sendUDP(t, link, q.WrittenShare(n)|uint32(bucket), packets, make([]byte, 100))
	atRest(t, link)
	for i, after := range countAll(t, link) {
		want := before[i]
		if i == q.Classes+n {
			want.Packets, want.Bytes = want.Packets+packets, want.Bytes+packets*142
		}
		if after != want {
			t.Errorf("share %d, leaf %d: %d counts %+v, want %+v", n, bucket, i, after, want)
		}
	}
	own := handleString(shareLeafHandle(n, bucket))
	for handle, after := range tcCounters(t, link, "qdisc") {
		want := leaves[handle]
		if handle == own || handle == handleString(rootHandle) {
			want.Packets, want.Bytes = want.Packets+packets, want.Bytes+packets*142
		}
		if after.Packets != want.Packets || after.Bytes != want.Bytes {
			t.Errorf("share %d, leaf %d: qdisc %s has %+v, want %+v", n, bucket, handle, after, want)
		}
	}
}

// TestShareOfNobody: what is sent to a share that is not there, as just before it
// comes or after it went, goes with the default class.
func TestShareOfNobody(t *testing.T) {
	q := caseNamed(t, "htb shares apart")
	link, _ := wire(t, 1)
	apply(t, link, q)
	sendUDP(t, link, q.WrittenShare(0), 20, make([]byte, 100))
	sendUDP(t, link, q.WrittenShare(7), 20, make([]byte, 100))
	atRest(t, link)
	for i, c := range countAll(t, link) {
		want := uint64(0)
		if i == int(q.Map[0]) {
			want = 40
		}
		if c.Packets != want {
			t.Errorf("%d counts %d packets, want %d", i, c.Packets, want)
		}
	}
}

// TestShareOverrun overruns a share: drops and what waits agree with tc, and nobody
// else has any.
func TestShareOverrun(t *testing.T) {
	q := caseNamed(t, "htb share slow")
	link, _ := wire(t, 1)
	apply(t, link, q)
	sendUDP(t, link, q.WrittenShare(0), 100, make([]byte, 1000))
	var counted ShareCounters
	var want tcStats
	for range 10 { // a packet may leave between two looks
		counted = mustShares(t, link)[0]
		want = tcCounters(t, link, "qdisc")[handleString(shareLeafHandle(0, 0))]
		if counted.QueueLen == want.Qlen {
			break
		}
	}
	if counted.Drops == 0 || counted.Drops != want.Drops || want.Qlen == 0 || counted.QueueLen != want.Qlen || counted.Backlog != want.Backlog {
		t.Errorf("%+v, tc has %+v", counted, want)
	}
	for i, c := range mustCount(t, link) {
		if c.Packets+c.Drops+c.QueueLen != 0 {
			t.Errorf("class %d counts %+v", i, c)
		}
	}
}
