package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// packetSocket sends by a device, and receives what arrives there.
func packetSocket(t *testing.T, device int) (fd int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	all := bits.ReverseBytes16(unix.ETH_P_ALL)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		all = unix.ETH_P_ALL
	}
	wait := unix.NsecToTimeval(int64(300 * time.Millisecond))
	if err := errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device}),
	); err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestBack: what comes with a ticket leaves by its link as it was, with the priority that it had there, and what comes without
// goes nowhere.
func TestBack(t *testing.T) {
	testutil.Needs(t, "tcx", "tc", "htb qdisc")
	room, ns := newRoom(t), testutil.Netns(t)
	wait, back := testutil.Veth(t, ns, ns, testutil.VethOptions{NoIP: true})
	link, far := testutil.Veth(t, ns, ns, testutil.VethOptions{NoIP: true})
	testutil.Output(t, "tc", strings.Fields("qdisc add dev "+link.Name+" root handle 1: htb default 2")...)
	testutil.Output(t, "tc", strings.Fields("class add dev "+link.Name+" parent 1: classid 1:1 htb rate 1gbit")...)
	testutil.Output(t, "tc", strings.Fields("class add dev "+link.Name+" parent 1: classid 1:2 htb rate 1gbit")...)
	g := begin(t, room, 1, noRules(), bare)
	if err := g.AttachBack(back.Index); err != nil {
		t.Fatal(err)
	}
	if room.BackID(back.Index) == 0 || room.BackID(link.Index) != 0 {
		t.Errorf("runs on %d as %d, on %d as %d", back.Index, room.BackID(back.Index), link.Index, room.BackID(link.Index))
	}
	from, to := packetSocket(t, wait.Index), packetSocket(t, far.Index)
	const ticket = 16
	own := append([]byte{2, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 0x88, 0xb5}, bytes.Repeat([]byte{7}, 52)...)
	send := func(length int, tail ...uint32) {
		frame := make([]byte, length)
		copy(frame, own)
		for i, word := range tail {
			binary.NativeEndian.PutUint32(frame[length-ticket+4*i:], word)
		}
		if err := unix.Sendto(from, frame, 0, &unix.SockaddrLinklayer{Ifindex: wait.Index}); err != nil {
			t.Fatal(err)
		}
	}
	arrives := func() []byte {
		frame := make([]byte, 2000)
		for {
			n, _, err := unix.Recvfrom(to, frame, 0)
			if errors.Is(err, unix.EAGAIN) {
				return nil
			}
			if err != nil {
				t.Fatal(err)
			}
			if frame[12] == own[12] && frame[13] == own[13] {
				return frame[:n]
			}
		}
	}
	for _, units := range []int{1, 46, 1100} {
		send(plan.WaitingLength+units, uint32(link.Index), 1<<16|1, uint32(len(own)))
		if got := arrives(); !bytes.Equal(got, own) {
			t.Errorf("with %d units: % x", units, got)
		}
	}
	if shown := testutil.Output(t, "tc", "-s", "class", "show", "dev", link.Name, "classid", "1:1"); !strings.Contains(shown, fmt.Sprintf("Sent %d bytes 3 pkt", 3*len(own))) {
		t.Errorf("with its priority\n%s", shown)
	}
	send(plan.WaitingLength, uint32(link.Index), 0, uint32(len(own))) // too short to stand for anything
	send(plan.WaitingLength + 1)                                      // by no link
	send(plan.WaitingLength+1, uint32(link.Index), 0, 129)            // longer than any that waits
	send(plan.WaitingLength+1, uint32(link.Index), 0, 13)             // no frame
	if got := arrives(); got != nil {
		t.Errorf("without a ticket: % x", got)
	}
	if err := room.DetachBack(); err != nil || room.BackID(back.Index) != 0 {
		t.Errorf("%v, runs as %d", err, room.BackID(back.Index))
	}
}
