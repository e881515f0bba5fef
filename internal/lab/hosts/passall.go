package hosts

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// passAll lets every packet go on to the next program.
var passAll = asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}

// PassAll runs fn while all that the device sends passes a program that does nothing: what it costs, any program there costs.
func (p Plug) PassAll(fn func() error) error {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "pass_all", Type: ebpf.SchedCLS, Instructions: passAll, License: "Dual BSD/GPL"})
	if err != nil {
		return fmt.Errorf("load a program that does nothing: %w", err)
	}
	defer program.Close()
	device, err := p.link()
	if err != nil {
		return err
	}
	var attached link.Link
	err = p.Host.do(func() error {
		attached, err = link.AttachTCX(link.TCXOptions{Interface: device.Attrs().Index, Program: program, Attach: ebpf.AttachTCXEgress})
		return err
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = Lacking("tcx")
	}
	if err != nil {
		return fmt.Errorf("have %s run a program that does nothing: %w", p, err)
	}
	return errors.Join(fn(), attached.Close())
}
