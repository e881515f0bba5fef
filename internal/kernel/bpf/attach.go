package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// AttachSockets puts socket_create of this generation on the scope's cgroup, in
// place of an older one in one step.
func (g *Generation) AttachSockets(rules plan.Rules, o Options) error {
	if err := g.fillDomains(o.Domains); err != nil {
		return err
	}
	spec, err := copied(parseSockets)
	if err != nil {
		return err
	}
	err = errors.Join(
		spec.Variables[socketCreateVarTrackExe].Set(len(rules.Exes) > 0),
		spec.Variables[socketCreateVarController1].Set(int32(o.Controller)),
		spec.Variables[socketCreateVarBinds].Set(len(o.Domains) > 0),
	)
	if err != nil {
		return fmt.Errorf("set socket_create: %w", err)
	}
	var programs socketCreatePrograms
	if err := spec.LoadAndAssign(&programs, g.shared(spec)); err != nil {
		return fmt.Errorf("load socket_create: %w", err)
	}
	defer programs.Close()
	return replace(g.room.socketPin(), programs.SocketCreate, func() (link.Link, error) {
		return link.AttachCgroup(link.CgroupOptions{
			Path: g.room.Cgroup, Attach: ebpf.AttachCGroupInetSockCreate, Program: programs.SocketCreate,
		})
	})
}

// replace updates a pinned attachment in one step, or makes and pins it.
func replace(path string, p *ebpf.Program, attach func() (link.Link, error)) error {
	l, err := link.LoadPinnedLink(path, nil)
	switch {
	case err == nil:
		defer l.Close()
		err := l.Update(p)
		if err == nil {
			return nil
		}
		// ENOLINK: the device or cgroup that it was attached to is gone.
		if !errors.Is(err, unix.ENOLINK) {
			return fmt.Errorf("update %s: %w", path, err)
		}
		if err := l.Unpin(); err != nil {
			return fmt.Errorf("unpin %s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open %s: %w", path, err)
	}
	made, err := attach()
	if err != nil {
		return fmt.Errorf("attach %s: %w", p, err)
	}
	defer made.Close()
	return pin(made, path)
}

func pin(object interface{ Pin(string) error }, path string) error {
	if err := object.Pin(path); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	return nil
}

// detachAll takes off what is pinned in a directory of links.
func detachAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list attachments: %w", err)
	}
	for _, e := range entries {
		err = errors.Join(err, removePinned(filepath.Join(dir, e.Name())))
	}
	return err
}

// DetachLink takes our programs off a link. A link without any is fine.
func (r Room) DetachLink(index int) error {
	return errors.Join(removePinned(r.linkPin(index)), r.DetachIngress(index))
}

// DetachIngress takes link_ingress off a link. A link without it is fine.
func (r Room) DetachIngress(index int) error { return removePinned(r.ingressPin(index)) }

// AttachedID returns the id of the program that tcx runs for us on a link, 0 if
// there is none: never attached, detached by somebody, or the device went away.
func (r Room) AttachedID(index int) uint32 { return runsOnLink(r.linkPin(index), index) }

// IngressID is AttachedID of what arrives by a link.
func (r Room) IngressID(index int) uint32 { return runsOnLink(r.ingressPin(index), index) }

func runsOnLink(pin string, index int) uint32 {
	return pinnedProgram(pin, func(info *link.Info) bool {
		tcx := info.TCX()
		return tcx != nil && tcx.Ifindex == uint32(index)
	})
}

// Ahead names the programs that tcx runs on a link before ours. One that returns
// TCX_PASS for a packet ends the chain: ours does not see that packet.
func (r Room) Ahead(index int) ([]string, error) {
	egress, err1 := ahead(index, r.AttachedID(index), ebpf.AttachTCXEgress)
	ingress, err2 := ahead(index, r.IngressID(index), ebpf.AttachTCXIngress)
	return append(egress, ingress...), errors.Join(err1, err2)
}

func ahead(index int, ours uint32, hook ebpf.AttachType) ([]string, error) {
	if ours == 0 {
		return nil, nil
	}
	found, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: hook})
	if err != nil {
		return nil, fmt.Errorf("list programs of interface %d: %w", index, err)
	}
	var names []string
	for _, p := range found.Programs {
		if uint32(p.ID) == ours {
			break
		}
		names = append(names, programName(p.ID))
	}
	return names, nil
}

func programName(id ebpf.ProgramID) string {
	name := fmt.Sprintf("program %d", id)
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return name // it is gone
	}
	defer p.Close()
	if info, err := p.Info(); err == nil && info.Name != "" {
		name += " (" + info.Name + ")"
	}
	return name
}

// SocketsAttached reports whether socket_create runs on the scope's cgroup.
func (r Room) SocketsAttached() bool { return runsOnCgroup(r.socketPin()) }

func runsOnCgroup(pin string) bool { return programOnCgroup(pin) != 0 }

func programOnCgroup(pin string) uint32 {
	return pinnedProgram(pin, func(info *link.Info) bool {
		c := info.Cgroup()
		return c != nil && c.CgroupId != 0
	})
}

func pinnedProgram(path string, attached func(*link.Info) bool) uint32 {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return 0
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil || !attached(info) {
		return 0
	}
	return uint32(info.Program)
}

// removePinned detaches a pinned link. Unpinning alone would do, but a link that
// another process holds open would go on acting.
func removePinned(path string) error {
	l, err := link.LoadPinnedLink(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer l.Close()
	err = l.Detach()
	if errors.Is(err, ebpf.ErrNotSupported) {
		err = nil
	}
	return errors.Join(err, l.Unpin())
}
