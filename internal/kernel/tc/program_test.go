package tc

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// Of the packet as programs see it, and what they may answer.
const (
	skbProtocol = 16 // offsetof(struct __sk_buff, protocol)
	skbPriority = 32 // offsetof(struct __sk_buff, priority)
	actUnspec   = -1
	actShot     = 2
)

// classifier loads a program and gives its id.
func classifier(t *testing.T, instructions asm.Instructions) (*ebpf.Program, uint32) {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: instructions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return p, uint32(id)
}

// prioritise is a classifier that sets skb->priority and goes on.
func prioritise(t *testing.T, priority int32) (*ebpf.Program, uint32) {
	t.Helper()
	return classifier(t, asm.Instructions{
		asm.Mov.Imm(asm.R2, priority),
		asm.StoreMem(asm.R1, skbPriority, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R0, actUnspec),
		asm.Return(),
	})
}

// A dropper is a classifier that counts and drops every packet of IPv4.
type dropper struct {
	*ebpf.Program
	id      uint32
	counter *ebpf.Map
}

func dropIPv4(t *testing.T) dropper {
	t.Helper()
	_ = rlimit.RemoveMemlock() // before 5.11 maps are charged to it
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { counter.Close() })
	p, id := classifier(t, asm.Instructions{
		asm.Mov.Imm(asm.R0, actUnspec),
		asm.LoadMem(asm.R2, asm.R1, skbProtocol, asm.Word),
		asm.JNE.Imm(asm.R2, int32(native.Uint16([]byte{unix.ETH_P_IP >> 8, unix.ETH_P_IP & 0xff})), "out"),
		asm.LoadMapValue(asm.R1, counter.FD(), 0),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Mov.Imm(asm.R0, actShot),
		asm.Return().WithSymbol("out"),
	})
	return dropper{p, id, counter}
}

func (d dropper) dropped(t *testing.T) int {
	t.Helper()
	var n uint64
	if err := d.counter.Lookup(uint32(0), &n); err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// attached fails the test unless our program at the hook is the wanted one, which
// 0 is for none, for Weir and for tc.
func attached(t *testing.T, link testutil.End, hook Hook, want uint32) {
	t.Helper()
	p, err := ReadProgram(link.Index, hook)
	if err != nil || p.ID != want || want != 0 && (p.Name != "weir" || p.Priority != 1) {
		t.Errorf("read %+v, %v at %s, want program %d", p, err, hook, want)
	}
	shown := tc(t, fmt.Sprintf("filter show dev %s %s", link.Name, hook))
	if n := strings.Count(shown, "direct-action"); n != min(int(want), 1) || want != 0 && !strings.Contains(shown, fmt.Sprintf(" id %d ", want)) {
		t.Errorf("tc shows, for program %d at %s:\n%s", want, hook, shown)
	}
}

// crossing gives a link with the sockets at both ends of what crosses one of its
// hooks.
func crossing(t *testing.T, hook Hook) (link testutil.End, from, to *net.UDPConn) {
	t.Helper()
	link, far := wire(t, 1)
	near, err := listenUDP(link)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	if hook == Ingress {
		return link, far, near
	}
	return link, near, far
}

// Marks of datagrams: meant for a program, and sent after the last is gone.
const early, late = 1, 2

// write sends datagrams that begin with a mark.
func write(from, to *net.UDPConn, count int, mark byte) error {
	for range count {
		if _, err := from.WriteTo([]byte{mark}, to.LocalAddr()); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// noneEarly fails the test where anything arrives ahead of a late datagram.
func noneEarly(t *testing.T, from, to *net.UDPConn) {
	t.Helper()
	if err := write(from, to, 1, late); err != nil {
		t.Fatal(err)
	}
	if mark := receive(t, to, 1)[0].class; mark != late { // where a class has its number
		t.Error("a packet got past the program")
	}
}

// comesTo waits until a program has counted so many packets.
func comesTo(t *testing.T, count func() int, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); count() < want && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := count(); n != want {
		t.Fatalf("%d packets met the program, want %d", n, want)
	}
}

var hooks = []Hook{Egress, Ingress}

func (h Hook) other() Hook {
	if h == Egress {
		return Ingress
	}
	return Egress
}

// TestProgram runs programs on what crosses each hook.
func TestProgram(t *testing.T) {
	testutil.Needs(t, "clsact qdisc", "bpf classifier")
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			link, from, to := crossing(t, hook)
			before := shape(t, link)
			attached(t, link, hook, 0)
			first, second := dropIPv4(t), dropIPv4(t)
			for _, p := range []dropper{first, first, second} {
				if err := Attach(link.Index, hook, p.FD(), "weir"); err != nil {
					t.Fatal(err)
				}
				attached(t, link, hook, p.id)
				attached(t, link, hook.other(), 0)
				want := p.dropped(t) + 10
				if err := write(from, to, 10, early); err != nil {
					t.Fatal(err)
				}
				comesTo(t, func() int { return p.dropped(t) }, want)
			}
			for range 2 {
				if err := Detach(link.Index, hook, false); err != nil {
					t.Fatal(err)
				}
				attached(t, link, hook, 0)
			}
			if after := shape(t, link); after != before {
				t.Errorf("detached:\n%swant:\n%s", after, before)
			}
			noneEarly(t, from, to)
		})
	}
}

// TestReplace replaces one program by another, over and over, while packets come:
// none of them gets past both.
func TestReplace(t *testing.T) {
	testutil.Needs(t, "clsact qdisc", "bpf classifier")
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			link, from, to := crossing(t, hook)
			programs := []dropper{dropIPv4(t), dropIPv4(t)}
			if err := Attach(link.Index, hook, programs[1].FD(), "weir"); err != nil {
				t.Fatal(err)
			}
			const many = 500 // fewer than the backlog of a CPU holds
			sent := make(chan error, 1)
			go func() {
				var err error
				pace := time.Tick(50 * time.Microsecond) // so that replacements fall among them
				for range many {
					<-pace
					err = errors.Join(err, write(from, to, 1, early))
				}
				sent <- err
			}()
			for turn := 0; len(sent) == 0; turn++ {
				if err := Attach(link.Index, hook, programs[turn%2].FD(), "weir"); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			comesTo(t, func() int { return programs[0].dropped(t) + programs[1].dropped(t) }, many)
			if err := Detach(link.Index, hook, false); err != nil {
				t.Fatal(err)
			}
			noneEarly(t, from, to)
		})
	}
}

// TestPriorityAtEgress: the queue goes by what the program writes.
func TestPriorityAtEgress(t *testing.T) {
	testutil.Needs(t, "clsact qdisc", "bpf classifier")
	q := caseNamed(t, "htb 100M")
	link, _ := wire(t, 1)
	apply(t, link, q)
	for _, class := range []int{2, 3} {
		p, id := prioritise(t, int32(htbClassID(q, class, 0)))
		if err := Attach(link.Index, Egress, p.FD(), "weir"); err != nil {
			t.Fatal(err)
		}
		attached(t, link, Egress, id)
		counted := mustCount(t, link)[class].Packets
		sendUDP(t, link, 0, 10, make([]byte, 500))
		if n := mustCount(t, link)[class].Packets - counted; n < 10 {
			t.Errorf("program %d sent %d packets to class %d", id, n, class)
		}
	}
}

// TestProgramBesideOthers: what others attached stays, and where they hold the
// first priority ours is behind them.
func TestProgramBesideOthers(t *testing.T) {
	testutil.Needs(t, "clsact qdisc", "bpf classifier", "u32 classifier")
	p, id := prioritise(t, 5)
	for _, hook := range hooks {
		filter := "filter add dev LINK %s protocol ip prio 1 u32 match u32 0 0 flowid 1:1"
		for _, test := range []struct {
			name     string
			commands []string
			priority uint16
			keep     bool
		}{
			{"empty clsact kept", []string{"qdisc add dev LINK clsact"}, 1, true},
			{"first priority taken", []string{"qdisc add dev LINK clsact", fmt.Sprintf(filter, hook)}, 2, false},
			{"other hook in use", []string{"qdisc add dev LINK clsact", fmt.Sprintf(filter, hook.other())}, 1, false},
		} {
			t.Run(fmt.Sprintf("%s %s", hook, test.name), func(t *testing.T) {
				link := newLink(t, 1)
				buildRoot(t, link, test.commands)
				filters := func() string {
					return shape(t, link) + tc(t, "filter show dev "+link.Name+" egress") + tc(t, "filter show dev "+link.Name+" ingress")
				}
				before := filters()
				if err := Attach(link.Index, hook, p.FD(), "weir"); err != nil {
					t.Fatal(err)
				}
				if got, err := ReadProgram(link.Index, hook); err != nil || got.ID != id || got.Priority != test.priority {
					t.Errorf("read %+v, %v", got, err)
				}
				if got, err := ReadProgram(link.Index, hook.other()); err != nil || got != (Program{}) {
					t.Errorf("read %+v, %v at %s, where ours is not", got, err, hook.other())
				}
				if err := Detach(link.Index, hook, test.keep); err != nil {
					t.Fatal(err)
				}
				if after := filters(); after != before {
					t.Errorf("detached:\n%swant:\n%s", after, before)
				}
			})
		}
	}
}

// TestBothHooks: programs at the two hooks of a link come and go by themselves,
// and clsact goes with the last.
func TestBothHooks(t *testing.T) {
	testutil.Needs(t, "clsact qdisc", "bpf classifier")
	for _, last := range hooks {
		t.Run(last.String()+" goes last", func(t *testing.T) {
			link := newLink(t, 1)
			before := shape(t, link)
			ids := map[Hook]uint32{}
			for _, hook := range hooks {
				p, id := prioritise(t, 5)
				if err := Attach(link.Index, hook, p.FD(), "weir"); err != nil {
					t.Fatal(err)
				}
				ids[hook] = id
			}
			for range 2 {
				attached(t, link, last.other(), ids[last.other()])
				attached(t, link, last, ids[last])
				ids[last.other()] = 0
				if err := Detach(link.Index, last.other(), false); err != nil {
					t.Fatal(err)
				}
			}
			if has, err := HasClsact(link.Index); !has || err != nil {
				t.Errorf("clsact went while a program was at %s (%v)", last, err)
			}
			if err := Detach(link.Index, last, false); err != nil {
				t.Fatal(err)
			}
			if after := shape(t, link); after != before {
				t.Errorf("detached:\n%swant:\n%s", after, before)
			}
		})
	}
}

// TestProgramBesideIngress: an ingress qdisc holds the place of clsact, and the
// kernel would run there what is meant for egress.
func TestProgramBesideIngress(t *testing.T) {
	testutil.Needs(t, "ingress qdisc", "bpf classifier")
	p, _ := prioritise(t, 5)
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			link := newLink(t, 1)
			tc(t, "qdisc add dev "+link.Name+" ingress")
			before := shape(t, link)
			err := Attach(link.Index, hook, p.FD(), "weir")
			want := fmt.Sprintf("attach %s program: an ingress qdisc is where clsact has to be", hook)
			if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("attach beside an ingress qdisc: %v", err)
			}
			if has, err := HasClsact(link.Index); has || err != nil {
				t.Errorf("an ingress qdisc is taken for clsact (%v)", err)
			}
			if got, err := ReadProgram(link.Index, hook); got != (Program{}) || err != nil {
				t.Errorf("read %+v, %v", got, err)
			}
			if err := Detach(link.Index, hook, false); err != nil {
				t.Error(err)
			}
			if after := shape(t, link); after != before {
				t.Errorf("changed to:\n%swant:\n%s", after, before)
			}
			if filters := tc(t, "filter show dev "+link.Name+" ingress"); strings.TrimSpace(filters) != "" {
				t.Errorf("attached at ingress:\n%s", filters)
			}
		})
	}
}
