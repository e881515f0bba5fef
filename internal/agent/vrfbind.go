package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bind"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// nowhere is the number of a device that there never is. What is bound to it reaches nothing.
const nowhere = math.MaxInt32

// attachSockets has new sockets followed, and bound to their VRFs, which are there by now.
func (c *change) attachSockets(w *plan.Want, o bpf.Options) error {
	if len(w.Bound) > 0 {
		err := c.inScope(func() error {
			devices, err := vrfIndexes()
			if err != nil {
				return err
			}
			netns, err := host.NetnsNumber()
			o.Domains = map[plan.ContractID]bpf.Domain{}
			for _, contract := range w.Contracts {
				name, ok := w.Bound[contract.ID]
				if !ok {
					continue
				}
				device, there := devices[name]
				if !there {
					device = nowhere
				}
				o.Domains[contract.ID] = bpf.Domain{Device: device, Netns: netns, Serial: contract.Serial}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.generation.AttachSockets(w.Rules, o)
}

// vrfIndexes are the numbers of the devices of all VRFs here, by their names.
func vrfIndexes() (map[string]int, error) {
	vrfs, err := host.VRFDevices()
	indexes := make(map[string]int, len(vrfs))
	for _, v := range vrfs {
		indexes[v.Name] = v.Index
	}
	return indexes, err
}

// readBound says to which VRFs new sockets of contracts are bound.
func (a *Agent) readBound(g *bpf.Generation) (map[plan.ContractID]string, error) {
	domains, err := g.Domains()
	if err != nil || len(domains) == 0 {
		return nil, err
	}
	bound := map[plan.ContractID]string{}
	err = a.inScope(func() error {
		indexes, err := vrfIndexes()
		for id, device := range domains {
			bound[id] = plan.NoVRF
			for name, index := range indexes {
				if index == device {
					bound[id] = name
				}
			}
		}
		return err
	})
	return bound, err
}

// bindSockets binds the new sockets of what was set to a VRF, "" to none, in a generation that
// is in force.
func (a *Agent) bindSockets(g *bpf.Generation, c plan.Contract, name string) error {
	if name == "" {
		return g.RemoveDomain(c.ID)
	}
	d := bpf.Domain{Serial: c.Serial}
	err := a.inScope(func() (err error) {
		if d.Device, err = indexOfVRF(name); errors.Is(err, ErrUnknownVRF) {
			d.Device, err = nowhere, nil // it was there when it was given
		}
		if err == nil {
			d.Netns, err = host.NetnsNumber()
		}
		return err
	})
	if err != nil {
		return err
	}
	return g.SetDomain(c.ID, d)
}

// binds reports whether the terms bind new sockets to a VRF.
func (t Terms) binds() bool { return t.VRF != nil && *t.VRF != "" }

// canBind returns ErrNoBinding where the terms bind sockets and nothing can, and ErrUnknownVRF or
// host.ErrNoVRF where there is no such VRF.
func (a *Agent) canBind(ctx context.Context, t Terms) error {
	if !t.binds() {
		return nil
	}
	return a.inScope(func() error {
		if *t.VRF == DefaultVRF {
			return fmt.Errorf("VRF %q: %w", *t.VRF, ErrUnknownVRF)
		}
		if _, err := indexOfVRF(*t.VRF); err != nil {
			return err
		}
		f := a.features(ctx)
		if lacks := f.NoBinding(); len(lacks) > 0 {
			return fmt.Errorf("%w: %s", ErrNoBinding, lacks[0])
		}
		return nil
	})
}

// sharesVRFs returns ErrOtherNetns where a process that the terms bind is in another network
// namespace than the VRFs: nothing would be bound there.
func (a *Agent) sharesVRFs(t Terms, pid uint32) error {
	if !t.binds() {
		return nil
	}
	var theirs unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &theirs); err != nil {
		return workload.ErrGone
	}
	return a.inScope(func() error {
		ours, err := host.NetnsNumber()
		if err == nil && uint32(theirs.Ino) != ours {
			err = fmt.Errorf("VRF %q: %w", *t.VRF, ErrOtherNetns)
		}
		return err
	})
}

// ErrOtherNetns says that a process is not where the VRFs are.
var ErrOtherNetns = errors.New("the process is in another network namespace")

// ProveBound asks a new socket of this process whether it is bound to a VRF: a program of a
// cgroup further down may have bound it before ours. It returns bind.ErrOutvoted then.
func ProveBound(name string) error {
	index, err := indexOfVRF(name)
	if err != nil {
		return err
	}
	got, err := bind.New()
	if err == nil && got != index {
		err = fmt.Errorf("process %d: new sockets are bound to device %d: %w", os.Getpid(), got, bind.ErrOutvoted)
	}
	return err
}
