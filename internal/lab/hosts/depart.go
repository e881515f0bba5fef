package hosts

import (
	"fmt"

	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"
)

// LimitByDepartures gives what a bare device sends the times at which it may leave, at a
// rate (bit/s, counted with Ethernet headers), and an fq at its root that keeps it until
// then: in one line for all flows, for 2 s at most. Unlimit takes it away, and so does an
// error.
func (p Plug) LimitByDepartures(rate uint64) error {
	return p.limited("departure times", p.depart(rate))
}

func (p Plug) depart(rate uint64) error {
	link, err := p.link()
	if err != nil {
		return err
	}
	index := link.Attrs().Index
	fq := netlink.NewFq(netlink.QdiscAttrs{LinkIndex: index, Parent: netlink.HANDLE_ROOT, Handle: rootHandle})
	if err := p.Host.handle.QdiscAdd(fq); err != nil {
		return absent(err, "fq qdisc")
	}
	spec, err := loadLabDepart()
	if err != nil {
		return err
	}
	if err := spec.Variables[labDepartVarRate].Set(max(rate/8, 1)); err != nil {
		return fmt.Errorf("set rate: %w", err)
	}
	if err := rlimit.RemoveMemlock(); err != nil { // before 5.11 it counts BPF
		return fmt.Errorf("lift the limit of locked memory: %w", err)
	}
	var programs labDepartPrograms
	if err := spec.LoadAndAssign(&programs, nil); err != nil {
		return fmt.Errorf("load lab_depart: %w", err)
	}
	defer programs.Close() // the filter keeps it
	attrs, err := p.atEgress(index)
	if err != nil {
		return err
	}
	return absent(p.Host.handle.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: attrs, Fd: programs.LabDepart.FD(), Name: labDepartProgLabDepart, DirectAction: true,
	}), "cls_bpf filter")
}
