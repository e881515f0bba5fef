package netprio

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"

	"github.com/weir-net/weir/internal/testutil"
)

// A witness is a veth whose near end, in the initial network namespace, counts
// packets by priority: an HTB class for each, 1:10 to 1:1f, read by tc.
type witness struct {
	t      *testing.T
	name   string
	target string // an address behind it
}

var witnesses atomic.Uint32

func newWitness(t *testing.T) witness {
	t.Helper()
	testutil.Needs(t, "root", "tc", "veth link", "htb qdisc", "bpf classifier")
	// Two of them are never up at the same time with the same network: it is
	// one of 198.18.0.0/15, which is for tests between hosts that own both ends.
	n := witnesses.Add(1)
	w := witness{t: t, name: fmt.Sprintf("wnp%d-%d", os.Getpid()%100000, n)}
	network := fmt.Sprintf("198.%d.%d.", 18+os.Getpid()>>6&1, os.Getpid()&0xff)
	w.target = fmt.Sprintf("%s%d:9", network, 4*n+2)

	run := func(name string, args ...string) { t.Helper(); testutil.Output(t, name, args...) }
	run("ip", "link", "add", w.name, "type", "veth", "peer", "name", w.name+"p")
	t.Cleanup(func() { run("ip", "link", "del", w.name) })
	// Nothing but the packets of the test: no IPv6, no ARP.
	run("ip", "link", "set", w.name, "addrgenmode", "none", "up")
	run("ip", "link", "set", w.name+"p", "addrgenmode", "none", "up")
	run("ip", "addr", "add", fmt.Sprintf("%s%d/30", network, 4*n+1), "dev", w.name)
	run("ip", "neigh", "add", fmt.Sprintf("%s%d", network, 4*n+2), "lladdr", "02:00:00:00:00:01", "nud", "permanent", "dev", w.name)
	w.classes()
	return w
}

// classes makes the HTB with a class per priority; a program returns the class.
func (w witness) classes() {
	w.t.Helper()
	tc := func(args ...string) { w.t.Helper(); testutil.Output(w.t, "tc", args...) }
	tc("qdisc", "add", "dev", w.name, "root", "handle", "1:", "htb", "default", "1f")
	for class := 0x10; class <= 0x1f; class++ {
		tc("class", "add", "dev", w.name, "parent", "1:", "classid", fmt.Sprintf("1:%x", class), "htb", "rate", "1gbit")
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "weir_witness", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R0, asm.R1, 32, asm.Word), // __sk_buff.priority
			asm.And.Imm(asm.R0, 15),
			asm.Or.Imm(asm.R0, 1<<16|0x10),
			asm.Return(),
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	defer program.Close() // the filter holds it
	link, err := netlink.LinkByName(w.name)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.MakeHandle(1, 0), Priority: 1, Protocol: 3},
		Fd:          program.FD(), Name: "weir_witness",
	}); err != nil {
		w.t.Fatalf("add filter: %v", err)
	}
}

var classCount = regexp.MustCompile(`class htb 1:1([0-9a-f]) [^\n]*\n Sent \d+ bytes (\d+) pkt`)

// counts reads the packets of each priority so far.
func (w witness) counts() (counts [16]int) {
	w.t.Helper()
	out := testutil.Output(w.t, "tc", "-s", "class", "show", "dev", w.name)
	found := classCount.FindAllStringSubmatch(out, -1)
	if len(found) != 16 {
		w.t.Fatalf("tc shows %d classes:\n%s", len(found), out)
	}
	for _, f := range found {
		priority, _ := strconv.ParseUint(f[1], 16, 8)
		counts[priority], _ = strconv.Atoi(f[2])
	}
	return counts
}

// expect runs something that sends n packets and checks that all of them, and
// no others, had a priority.
func (w witness) expect(what string, priority, n int, send func()) {
	w.t.Helper()
	before := w.counts()
	send()
	after := w.counts()
	for p := range after {
		want := 0
		if p == priority {
			want = n
		}
		if got := after[p] - before[p]; got != want {
			w.t.Errorf("%s: %d packets of priority %d, want %d", what, got, p, want)
		}
	}
}
