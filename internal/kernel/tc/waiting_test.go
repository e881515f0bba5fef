package tc

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

var waitingNeeds = []string{"htb qdisc", "bfifo qdisc", "ip"}

// waitingQueue has two classes, of 1 and of 100 Mbit/s.
func waitingQueue() plan.Queue {
	return plan.Queue{
		Scheduler: policy.HTB, Rate: 100_000_000_000, Classes: 1, Leaf: plan.LeafBFIFO, Map: plan.SpreadOver(1), Weighs: true,
		Shares: []plan.Share{{Max: 1_000_000}, {Max: 100_000_000}},
	}
}

// waiting makes the place where acknowledgements wait, in a namespace of its own.
func waiting(t *testing.T) (at int, q plan.Queue) {
	t.Helper()
	q = waitingQueue()
	err := MakeWaiting()
	if err == nil {
		at, _, err = FindWaiting()
	}
	if err == nil {
		err = Apply(at, q, Options{})
	}
	if err == nil {
		err = OpenWaiting()
	}
	if err != nil {
		t.Fatal(err)
	}
	return at, q
}

// waits fails the test unless this is read.
func waits(t *testing.T, want plan.Waiting) {
	t.Helper()
	got, err := ReadWaiting()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got)\n%s", diff)
	}
}

// TestWaiting sends frames to the classes of the queue, which counts each as what its length stands
// for.
func TestWaiting(t *testing.T) {
	testutil.Needs(t, waitingNeeds...)
	testutil.Netns(t)
	waits(t, plan.Waiting{})
	at, q := waiting(t)
	if again, _ := waiting(t); again != at {
		t.Errorf("device %d became %d", at, again)
	}
	waits(t, plan.Waiting{Queue: q})
	if shown := testutil.Output(t, "ip", "-d", "link", "show", WaitingDevice); !strings.Contains(shown, "acknowledgements wait") ||
		!strings.Contains(shown, "addrgenmode none") || !strings.Contains(shown, "02:77:65:69:72:01") {
		t.Errorf("ip shows\n%s", shown)
	}
	if shown := tc(t, "-d qdisc show dev "+WaitingDevice+" root"); !strings.Contains(shown, "overhead -144") {
		t.Errorf("tc shows\n%s", shown)
	}
	sent := map[int]uint64{plan.WaitingLength + 1: 1, plan.WaitingLength + 2: 2, plan.WaitingLength + 47: 47, plan.WaitingLength + 1100: 1100, 60: 1}
	var units uint64
	for length, stands := range sent {
		units += stands
		sendFrame(t, at, q.WrittenShare(1), length)
	}
	classes, err := Shares(at)
	if err != nil || len(classes) != 2 {
		t.Fatalf("%+v, %v", classes, err)
	}
	// What waits still is at the limit of 100 Mbit/s for some milliseconds.
	if got := classes[1]; got.Packets+got.QueueLen != uint64(len(sent)) || got.Bytes+got.Backlog != units<<plan.WaitingUnit || classes[0].Packets != 0 {
		t.Errorf("%d frames that stand for %d bytes are %+v, the others %+v", len(sent), units<<plan.WaitingUnit, got, classes[0])
	}
	for range 2 {
		if err := RemoveWaiting(); err != nil {
			t.Fatal(err)
		}
		waits(t, plan.Waiting{})
	}
}

// sendFrame sends a frame of a length by a device, with a priority.
func sendFrame(t *testing.T, device int, priority uint32, length int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, int(priority)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Sendto(fd, make([]byte, length), 0, &unix.SockaddrLinklayer{Ifindex: device}); err != nil {
		t.Fatal(err)
	}
}

// TestWaitingDrift: what others do to each part is read, and mended.
func TestWaitingDrift(t *testing.T) {
	testutil.Needs(t, waitingNeeds...)
	testutil.Netns(t)
	_, q := waiting(t)
	ip := func(all ...string) func() {
		return func() {
			for _, args := range all {
				testutil.Output(t, "ip", strings.Fields(args)...)
			}
		}
	}
	for what, c := range map[string]struct {
		do   func()
		want plan.Waiting
	}{
		"gone":     {ip("link del " + BackDevice), plan.Waiting{}},
		"renamed":  {ip("link set "+BackDevice+" down", "link set "+BackDevice+" name other"), plan.Waiting{Queue: q, Drift: []string{BackDevice + " is gone"}}},
		"down":     {ip("link set " + WaitingDevice + " down"), plan.Waiting{Queue: q, Drift: []string{WaitingDevice + " is down"}}},
		"no queue": {func() { tc(t, "qdisc del dev "+WaitingDevice+" root") }, plan.Waiting{Queue: plan.Queue{Scheduler: policy.None}, Drift: []string{WaitingDevice + " has no queue of Weir's"}}},
	} {
		t.Log(what)
		c.do()
		waits(t, c.want)
		waiting(t)
		waits(t, plan.Waiting{Queue: q})
	}
}

// TestWaitingForeign: another's device of our name is told of, and left alone.
func TestWaitingForeign(t *testing.T) {
	testutil.Needs(t, waitingNeeds...)
	testutil.Netns(t)
	testutil.Output(t, "ip", "link", "add", BackDevice, "type", "veth", "peer", "name", "other")
	for what, err := range map[string]error{"make": MakeWaiting(), "check": CheckWaiting(), "open": OpenWaiting()} {
		if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "the device "+BackDevice+" is not Weir's") {
			t.Errorf("%s: %v", what, err)
		}
	}
	waits(t, plan.Waiting{})
	if err := RemoveWaiting(); err != nil {
		t.Error(err)
	}
	testutil.Output(t, "ip", "link", "show", BackDevice)
}

// TestSizeTableRead reads what is cut off, or is another's, as no table of Weir's.
func TestSizeTableRead(t *testing.T) {
	whole := weighing.encode().Serialize()[unix.SizeofRtAttr:]
	if got, err := decodeSizeTable(whole); err != nil || got != weighing {
		t.Fatalf("%+v, %v", got, err)
	}
	for cut := range sizeSpec + unix.SizeofRtAttr {
		if got, _ := decodeSizeTable(whole[:cut]); got != (sizeTable{}) {
			t.Errorf("%d of %d bytes: %+v", cut, len(whole), got)
		}
	}
	other := append([]byte(nil), whole...)
	other[unix.SizeofRtAttr+specSize] = 2
	if got, err := decodeSizeTable(other); err != nil || got != (sizeTable{}) {
		t.Errorf("of two entries: %+v, %v", got, err)
	}
}
