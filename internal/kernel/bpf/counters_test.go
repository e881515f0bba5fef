package bpf

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

func (w *wire) count(t *testing.T, g *Generation, id plan.ContractID) Counter {
	t.Helper()
	all, err := g.Counters(w.link.Index)
	if err != nil {
		t.Fatal(err)
	}
	return all[id]
}

// TestCountersGoOn follows one counter over generations: kept, kept although the
// table grew, and begun anew for a fresh contract.
func TestCountersGoOn(t *testing.T) {
	w := newWire(t)
	g := w.publish(ports(4000), bare)
	send := func(n int) {
		w.expect(firstClass, n, func() {
			for range n {
				w.udp("udp4", w.to4(4000), nil)
			}
		})
	}
	send(3)
	const size = 14 + 20 + 8 + 1
	if c := w.count(t, g, plan.FirstID); c != (Counter{Packets: 3, Bytes: 3 * size}) {
		t.Fatalf("counted %+v", c)
	}
	g = w.publish(ports(4000, 5000), bare)
	send(2)
	if c := w.count(t, g, plan.FirstID); c.Packets != 5 {
		t.Fatalf("counted %+v after another generation", c)
	}
	many := w.promises()
	many.Contracts[2000] = plan.Promise{Priority: 1, Serial: 1}
	g = w.publishTo(ports(4000), many, bare)
	send(1)
	if c := w.count(t, g, plan.FirstID); c != (Counter{Packets: 6, Bytes: 6 * size}) {
		t.Fatalf("counted %+v after the table grew", c)
	}
	g = w.publish(ports(4000), bare)
	if c := w.count(t, g, plan.FirstID); c.Packets != 6 {
		t.Fatalf("counted %+v after the table shrank", c)
	}
	w.number++
	fresh := begin(t, w.room, w.number, ports(4000), bare)
	if err := fresh.LoadLink(w.link.Index, ports(4000), w.promises(), []plan.ContractID{plan.FirstID}); err != nil {
		t.Fatal(err)
	}
	w.attach(fresh)
	send(1)
	if c := w.count(t, fresh, plan.FirstID); c.Packets != 1 {
		t.Fatalf("counted %+v for a contract that is new", c)
	}
}

// TestCountersOneByOne reads without batches what the batches read.
func TestCountersOneByOne(t *testing.T) {
	w := newWire(t)
	g := w.publish(ports(4000), bare)
	w.expect(firstClass, 1, func() { w.udp("udp4", w.to4(4000), nil) })
	m := g.links[w.link.Index].counters
	slow, err := countersOneByOne(m, possibleCPUs(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := w.count(t, g, plan.FirstID); slow[plan.FirstID] != want || want.Packets != 1 {
		t.Errorf("one by one %+v, by batch %+v", slow[plan.FirstID], want)
	}
}

// TestCountersOfSegments sends one write that leaves as a super-packet: packets
// and bytes are those of the wire, as the class below counts them.
func TestCountersOfSegments(t *testing.T) {
	w := newWire(t)
	g := w.publish(ports(1000), bare)
	l := w.listen(w.there, w.to4(1000))
	c := w.dial(w.here, w.to4(1000))
	far := accept(t, l)
	go func() {
		_, _ = c.Write(make([]byte, 200_000))
		c.Close()
	}()
	if n, err := io.Copy(io.Discard, far); err != nil || n != 200_000 {
		t.Fatalf("received %d bytes: %v", n, err)
	}
	far.Close()
	out := w.here.Output("tc", "-s", "class", "show", "dev", w.link.Name, "classid", "7e1f:10")
	var bytes, packets uint64
	if _, err := fmt.Sscanf(out[strings.Index(out, "Sent"):], "Sent %d bytes %d pkt", &bytes, &packets); err != nil {
		t.Fatal(err)
	}
	got := w.count(t, g, plan.FirstID)
	if got != (Counter{Packets: packets, Bytes: bytes}) || packets < 200_000/1448 {
		t.Errorf("counted %+v, the class %d packets and %d bytes", got, packets, bytes)
	}
}

func possibleCPUs(t *testing.T) int {
	t.Helper()
	n, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
