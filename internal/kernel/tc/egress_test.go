package tc

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/weir-net/weir/internal/testutil"
)

// program is a classifier that sets skb->priority and goes on.
func program(t *testing.T, priority int32) (*ebpf.Program, uint32) {
	t.Helper()
	const skbPriority, actUnspec = 32, -1 // offsetof(struct __sk_buff, priority)
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R2, priority),
		asm.StoreMem(asm.R1, skbPriority, asm.R2, asm.Word),
		asm.Mov.Imm(asm.R0, actUnspec),
		asm.Return(),
	}})
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

func TestEgress(t *testing.T) {
	testutil.Needs(t, "clsact qdisc", "bpf classifier")
	q := caseNamed(t, "htb 100M")
	link, _ := wire(t, 1)
	apply(t, link, q)
	before := shape(t, link)
	first, firstID := program(t, int32(htbClassID(q, 2, 0)))
	second, secondID := program(t, int32(htbClassID(q, 3, 0)))
	attached := func(want uint32) {
		t.Helper()
		p, err := ReadEgress(link.Index)
		if err != nil || p.ID != want || want != 0 && (p.Name != "weir" || p.Priority != 1) {
			t.Errorf("read %+v, %v, want program %d", p, err, want)
		}
		shown := tc(t, "filter show dev "+link.Name+" egress")
		if n := strings.Count(shown, "direct-action"); n != min(int(want), 1) || want != 0 && !strings.Contains(shown, fmt.Sprintf(" id %d ", want)) {
			t.Errorf("tc shows, for program %d:\n%s", want, shown)
		}
	}
	attached(0)
	for _, p := range []struct {
		fd    int
		id    uint32
		class int
	}{{first.FD(), firstID, 2}, {first.FD(), firstID, 2}, {second.FD(), secondID, 3}} {
		if err := AttachEgress(link.Index, p.fd, "weir"); err != nil {
			t.Fatal(err)
		}
		attached(p.id)
		counted := mustCount(t, link)[p.class].Packets
		sendUDP(t, link, 0, 10, make([]byte, 500))
		if n := mustCount(t, link)[p.class].Packets - counted; n < 10 {
			t.Errorf("program %d sent %d packets to class %d", p.id, n, p.class)
		}
	}
	for range 2 {
		if err := DetachEgress(link.Index, false); err != nil {
			t.Fatal(err)
		}
		attached(0)
	}
	if after := shape(t, link); after != before {
		t.Errorf("detached:\n%swant:\n%s", after, before)
	}
}

// TestEgressBesideOthers: what others attached stays, and where they hold the
// first priority ours is behind them.
func TestEgressBesideOthers(t *testing.T) {
	testutil.Needs(t, "clsact qdisc", "bpf classifier", "u32 classifier")
	p, id := program(t, 5)
	for _, test := range []struct {
		name     string
		commands []string
		priority uint16
		keep     bool
	}{
		{"empty clsact kept", []string{"qdisc add dev LINK clsact"}, 1, true},
		{"first priority taken", []string{
			"qdisc add dev LINK clsact",
			"filter add dev LINK egress protocol ip prio 1 u32 match u32 0 0 flowid 1:1",
		}, 2, false},
		{"ingress in use", []string{
			"qdisc add dev LINK clsact",
			"filter add dev LINK ingress protocol ip prio 1 u32 match u32 0 0 flowid 1:1",
		}, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			link := newLink(t, 1)
			buildRoot(t, link, test.commands)
			filters := func() string {
				return shape(t, link) + tc(t, "filter show dev "+link.Name+" egress") + tc(t, "filter show dev "+link.Name+" ingress")
			}
			before := filters()
			if err := AttachEgress(link.Index, p.FD(), "weir"); err != nil {
				t.Fatal(err)
			}
			if got, err := ReadEgress(link.Index); err != nil || got.ID != id || got.Priority != test.priority {
				t.Errorf("read %+v, %v", got, err)
			}
			if err := DetachEgress(link.Index, test.keep); err != nil {
				t.Fatal(err)
			}
			if after := filters(); after != before {
				t.Errorf("detached:\n%swant:\n%s", after, before)
			}
		})
	}
}

// TestEgressBesideIngress: an ingress qdisc holds the place of clsact, and the
// kernel would run there what is meant for egress.
func TestEgressBesideIngress(t *testing.T) {
	testutil.Needs(t, "ingress qdisc", "bpf classifier")
	link := newLink(t, 1)
	tc(t, "qdisc add dev "+link.Name+" ingress")
	before := shape(t, link)
	p, _ := program(t, 5)
	err := AttachEgress(link.Index, p.FD(), "weir")
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "an ingress qdisc is where clsact has to be") {
		t.Errorf("attach beside an ingress qdisc: %v", err)
	}
	if has, err := HasClsact(link.Index); has || err != nil {
		t.Errorf("an ingress qdisc is taken for clsact (%v)", err)
	}
	if got, err := ReadEgress(link.Index); got != (EgressProgram{}) || err != nil {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := DetachEgress(link.Index, false); err != nil {
		t.Error(err)
	}
	if after := shape(t, link); after != before {
		t.Errorf("changed to:\n%swant:\n%s", after, before)
	}
	if filters := tc(t, "filter show dev "+link.Name+" ingress"); strings.TrimSpace(filters) != "" {
		t.Errorf("attached at ingress:\n%s", filters)
	}
}
