package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"go.yaml.in/yaml/v4"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// A rawController enforces just what the labs ask for by the oldest means of
// the kernel: an HTB whose classes are picked by u32 on ports and by
// SO_PRIORITY on sockets. It proves the labs without the product.
type rawController struct {
	cgroup  string
	classes plan.ClassMap
	turns   bool // all classes take turns instead of keeping an order

	mu      sync.Mutex
	netns   netns.NsHandle
	handle  *netlink.Handle
	device  netlink.Link
	levels  map[int]policy.Level // pid -> level before Set
	attach  []link.Link
	pace    policy.Rate
	applied int // number of calls of Apply
}

func newRawController(cgroup string) *rawController {
	return &rawController{cgroup: cgroup, classes: plan.SpreadOver(4), levels: map[int]policy.Level{}}
}

const rawMajor = 0x77

// MendLookups is nothing for who makes no VRF.
func (c *rawController) MendLookups(context.Context, string, string) (string, []netip.Addr, error) {
	return "", nil, errors.ErrUnsupported
}

func (c *rawController) UnmendLookups(string, string) error { return nil }

func rawClass(class uint8) uint32 { return netlink.MakeHandle(rawMajor, 0x10+uint16(class)) }

// rawFloor is what each class is guaranteed.
const rawFloor = 200_000

type rawPolicy struct {
	Links     map[string]struct{ Rate policy.Rate }
	Workloads map[string]struct {
		Match []struct {
			Port   uint16
			Cgroup string
		}
		Priority  policy.Level
		TCPMemory struct{ Max string } `yaml:"tcp-memory"`
		Egress    struct {
			Max policy.Rate
			Min string // per cent of the one link
		}
	}
}

func (c *rawController) Apply(_ context.Context, path string, text []byte) (err error) {
	var p rawPolicy
	if err := yaml.Unmarshal(text, &p); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.applied++
	if c.netns, err = netns.GetFromPath(path); err != nil {
		return err
	}
	if c.handle, err = netlink.NewHandleAt(c.netns, unix.NETLINK_ROUTE); err != nil {
		return err
	}
	for name, l := range p.Links {
		if c.device, err = c.handle.LinkByName(name); err != nil {
			return err
		}
		// Its class for all others holds a limit of the one who sends here.
		for _, w := range p.Workloads {
			l.Rate = max(l.Rate, w.Egress.Max)
		}
		c.pace = l.Rate
		if err := c.queue(uint64(l.Rate)); err != nil {
			return err
		}
	}
	shares := uint16(0)
	for _, w := range p.Workloads {
		class := rawClass(c.classes[w.Priority])
		if w.Egress.Min != "" {
			class = netlink.MakeHandle(rawMajor, 0x20+shares)
			err = errors.Join(err, c.share(class, w.Egress.Min))
			shares++
		}
		for _, m := range w.Match {
			if m.Port != 0 {
				err = errors.Join(err, c.port(m.Port, w.Priority))
			}
			if w.TCPMemory.Max != "" {
				err = errors.Join(err, c.caps(m.Cgroup))
				continue
			}
			if m.Cgroup != "" && w.Egress.Max == 0 {
				err = errors.Join(err, c.tag(m.Cgroup, class))
			}
		}
	}
	return err
}

// share adds a class with a part of the line, which borrows as the least urgent.
func (c *rawController) share(class uint32, percent string) error {
	var part uint64
	if _, err := fmt.Sscanf(percent, "%d%%", &part); err != nil {
		return err
	}
	return c.class(rawTop, class, uint64(c.pace)*part/100, 3)
}

// queue builds an HTB with four leaves. Their pfifo takes its limit from the
// device's queue length: 20 ms.
func (c *rawController) queue(rate uint64) error {
	if err := c.handle.LinkSetTxQLen(c.device, max(int(rate/8/1514/50), 40)); err != nil {
		return err
	}
	index := c.device.Attrs().Index
	htb := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(rawMajor, 0)})
	htb.Defcls = 0x10
	if err := c.handle.QdiscAdd(htb); err != nil {
		return fmt.Errorf("add htb: %w", err)
	}
	err := c.class(netlink.MakeHandle(rawMajor, 0), rawTop, rate, 0)
	for class := range uint8(4) {
		prio := uint32(3 - class)
		if c.turns {
			prio = 0
		}
		err = errors.Join(err, c.class(rawTop, rawClass(class), rawFloor, prio))
	}
	return err
}

// rawTop is the class that shapes the line.
var rawTop = netlink.MakeHandle(rawMajor, 1)

// class adds one that has a floor (bit/s) and may have the whole line.
func (c *rawController) class(parent, handle uint32, floor uint64, prio uint32) error {
	burst := uint32(max(c.pace/8/1000, 3028))
	return c.handle.ClassAdd(netlink.NewHtbClass(netlink.ClassAttrs{LinkIndex: c.device.Attrs().Index, Parent: parent, Handle: handle},
		netlink.HtbClassAttrs{Rate: floor, Ceil: uint64(c.pace), Buffer: burst, Cbuffer: burst, Quantum: 1514, Prio: prio}))
}

func (c *rawController) port(port uint16, level policy.Level) error {
	// The destination port of IPv4 without options.
	return c.handle.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: c.device.Attrs().Index, Parent: netlink.MakeHandle(rawMajor, 0), Priority: 1, Protocol: unix.ETH_P_IP},
		ClassId:     rawClass(c.classes[level]),
		Sel: &netlink.TcU32Sel{Flags: netlink.TC_U32_TERMINAL, Nkeys: 1, Keys: []netlink.TcU32Key{
			{Mask: 0x0000ffff, Val: uint32(port), Off: 20},
		}},
	})
}

// tag gives the sockets that are made in a cgroup their class.
func (c *rawController) tag(cgroup string, class uint32) error {
	const offPriority = 20 // struct bpf_sock
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.CGroupSock, AttachType: ebpf.AttachCGroupInetSockCreate, License: "GPL",
		Instructions: asm.Instructions{
			asm.LoadImm(asm.R2, int64(class), asm.DWord),
			asm.StoreMem(asm.R1, offPriority, asm.R2, asm.Word),
			asm.Mov.Imm(asm.R0, 1),
			asm.Return(),
		},
	})
	if err != nil {
		return err
	}
	defer prog.Close()
	// The path of the workload, found by its name below the lab's directory.
	dir := filepath.Join(c.cgroup, filepath.Base(cgroup))
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupInetSockCreate, Program: prog})
	if err == nil {
		c.attach = append(c.attach, l)
	}
	return err
}

// caps gives connections of a cgroup, and of those below, buffers of 64 KiB when they are
// established.
func (c *rawController) caps(cgroup string) error {
	const half = 32 << 10 // the kernel doubles it
	var code asm.Instructions
	code = append(code,
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMem(asm.R2, asm.R6, 0, asm.Word), // op
		asm.JEq.Imm(asm.R2, 4, "cap"),            // BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB
		asm.JNE.Imm(asm.R2, 5, "end"),            // BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB
		asm.StoreImm(asm.RFP, -4, half, asm.Word).WithSymbol("cap"),
	)
	for _, option := range []int32{unix.SO_SNDBUF, unix.SO_RCVBUF} {
		code = append(code,
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Imm(asm.R2, unix.SOL_SOCKET),
			asm.Mov.Imm(asm.R3, option),
			asm.Mov.Reg(asm.R4, asm.RFP),
			asm.Add.Imm(asm.R4, -4),
			asm.Mov.Imm(asm.R5, 4),
			asm.FnSetsockopt.Call(),
		)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps, License: "GPL",
		Instructions: append(code, asm.Mov.Imm(asm.R0, 1).WithSymbol("end"), asm.Return()),
	})
	if err != nil {
		return err
	}
	defer prog.Close()
	dir := filepath.Join(c.cgroup, filepath.Base(cgroup))
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir, Attach: ebpf.AttachCGroupSockOps, Program: prog})
	if err == nil {
		c.attach = append(c.attach, l)
	}
	return err
}

func (c *rawController) Set(_ context.Context, pid int, level policy.Level) error {
	return eachSocket(pid, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, int(rawClass(c.classes[level])))
	})
}

func (c *rawController) Clear(ctx context.Context, pid int) error { return c.Set(ctx, pid, 0) }

// eachSocket runs fn on a duplicate of every socket of a process.
func eachSocket(pid int, fn func(fd int) error) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	for _, e := range entries {
		target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name()))
		if err != nil || !strings.HasPrefix(target, "socket:") {
			continue
		}
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			return err
		}
		fd, err := unix.PidfdGetfd(process, n, 0)
		if err != nil {
			return err
		}
		err = fn(fd)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *rawController) Reset(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, l := range c.attach {
		err = errors.Join(err, l.Close())
	}
	c.attach = nil
	if c.handle == nil {
		return err
	}
	if c.device == nil { // a policy without a link
		c.handle.Close()
		c.handle = nil
		return errors.Join(err, c.netns.Close())
	}
	htb := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: c.device.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(rawMajor, 0)})
	err = errors.Join(err, c.handle.QdiscDel(htb))
	c.handle.Close()
	c.handle = nil
	return errors.Join(err, c.netns.Close())
}

func (c *rawController) Dropped() (uint64, error) { return 0, nil }

func (c *rawController) ClassCounters(_ context.Context, name string) ([]ClassCount, error) {
	if name != c.device.Attrs().Name {
		return nil, fmt.Errorf("link %s has no policy", name)
	}
	list, err := c.handle.ClassList(c.device, netlink.HANDLE_NONE)
	if err != nil {
		return nil, err
	}
	var counts []ClassCount
	for _, item := range list {
		_, minor := netlink.MajorMinor(item.Attrs().Handle)
		if minor < 0x10 {
			continue
		}
		count := ClassCount{
			Class:   int(minor - 0x10),
			Packets: uint64(item.Attrs().Statistics.Basic.Packets),
			Bytes:   item.Attrs().Statistics.Basic.Bytes,
			Backlog: uint64(item.Attrs().Statistics.Queue.Backlog),
			Floor:   rawFloor,
		}
		for level, class := range c.classes {
			if int(class) == count.Class {
				count.Levels = append(count.Levels, policy.Level(level))
			}
		}
		counts = append(counts, count)
	}
	slices.SortFunc(counts, func(a, b ClassCount) int { return a.Class - b.Class })
	return counts, nil
}

func (c *rawController) Rung(string) string                                { return "raw htb" }
func (c *rawController) NoLimits(context.Context, policy.Method) string    { return "" }
func (c *rawController) NoReceiving(context.Context, policy.Method) string { return "" }
func (c *rawController) Cgroup() string                                    { return c.cgroup }
