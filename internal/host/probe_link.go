package host

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// loopback is the index of lo in every new network namespace.
const loopback = 1

// tcx attaches a program to lo by a tcx link.
func tcx() error {
	prog, err := passing(ebpf.SchedCLS, ebpf.AttachNone)
	if err != nil {
		return err
	}
	defer prog.Close()
	l, err := link.AttachTCX(link.TCXOptions{Interface: loopback, Program: prog, Attach: ebpf.AttachTCXEgress})
	if err != nil {
		return err
	}
	return l.Close()
}

// clsBPF attaches a program to lo by the classifier of the clsact qdisc, which
// go away with their namespace.
func clsBPF() error {
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: loopback, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
	if err := netlink.QdiscAdd(clsact); err != nil {
		return absentOn(fmt.Errorf("add clsact: %w", err), unix.ENOENT, unix.EOPNOTSUPP)
	}
	prog, err := passing(ebpf.SchedCLS, ebpf.AttachNone)
	if err != nil {
		return err
	}
	defer prog.Close()
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: loopback, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL,
		},
		Fd: prog.FD(), Name: programName, DirectAction: true,
	}
	if err := netlink.FilterAdd(filter); err != nil {
		return absentOn(fmt.Errorf("add cls_bpf: %w", err), unix.ENOENT, unix.EOPNOTSUPP)
	}
	return nil
}

// programName is the name of every program and map of a probe, as bpftool
// shows it while they live.
const programName = "weir_probe"

// passing loads the smallest program of a type that lets everything pass. It
// returns 1, which is also tc's TC_ACT_RECLASSIFY: no packet ever meets it.
func passing(typ ebpf.ProgramType, attach ebpf.AttachType) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: programName, Type: typ, AttachType: attach, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
}
