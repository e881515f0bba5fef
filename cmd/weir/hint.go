package main

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bind"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/netprio"
	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// errNoCgroup2 says that nothing here tells sockets by their cgroup.
var errNoCgroup2 = agent.ErrNoCgroup2

// A hinted error says what to do about it, in words for this one case.
type hinted struct {
	error
	help []string
}

func (h *hinted) Unwrap() error { return h.error }

// hints are what to do about an error, the best advice first.
func hints(err error) []string {
	var (
		own   *hinted
		usage *usageError
		value *policy.ValueError
	)
	switch {
	case errors.As(err, &own):
		return own.help
	case errors.As(err, &usage) && usage.help != "":
		return []string{usage.help}
	case errors.As(err, &value):
		return nil // its help is in its text
	}
	for _, known := range knownErrors() {
		if errors.Is(err, known.err) {
			return known.help
		}
	}
	return nil
}

type advice struct {
	err  error
	help []string
}

// knownErrors is in order: an error may wrap several of them.
func knownErrors() []advice {
	return []advice{
		{state.ErrBusy, []string{"wait until it has ended, and try again"}},
		{state.ErrOtherVersion, []string{"weir reset of the version that wrote it, or a reboot, makes the host its own again"}},
		{bpf.ErrOtherVersion, []string{"weir reset, and then weir apply FILE: what is pinned is of another version"}},
		{bpf.ErrFull, []string{"weir apply FILE makes larger tables: there is room for some hundred weir set and weir run between two of them"}},
		{bpf.ErrNoLimits, []string{"weir apply FILE loads programs that do, where the kernel can; weir doctor tells whether"}},
		{agent.ErrNoLimits, []string{"weir doctor tells what this kernel has, and which limits a policy can give here; --priority needs none of it"}},
		{agent.ErrNoTimes, []string{"without --ingress-method windows and buckets hold it where answers can not wait; for edt, method: edt of any limit in the policy has weir apply prepare its links"}},
		{agent.ErrNoBounds, []string{"weir doctor tells what this kernel has"}},
		{agent.ErrNoBinding, []string{"weir vrf exec NAME -- COMMAND binds a command by other means, weir vrf service a unit"}},
		{agent.ErrOtherNetns, []string{"nsenter --net=/run/netns/NAME weir vrf exec VRF -- COMMAND, for one of that namespace"}},
		{host.ErrNoVRF, []string{"boot a kernel with CONFIG_NET_VRF; some distributions keep the module vrf in a package of more modules"}},
		{bind.ErrOutvoted, []string{"weir explain --pid PID tells of a contract that binds them; weir vrf exec default -- COMMAND leaves what was entered"}},
		{steer.ErrRefused, []string{"dmesg may tell why; some drivers take flow rules only after ethtool -K LINK ntuple on"}},
		{agent.ErrRolledBack, []string{"weir status tells what is in force; weir doctor what this host can do"}},
		{agent.ErrUnfinished, []string{"weir apply FILE finishes it, weir reset takes it back"}},
		{agent.ErrPending, []string{"weir confirm keeps it, weir rollback takes it back"}},
		{agent.ErrNothingPending, []string{"weir status tells what is in force; weir reset takes it away"}},
		{agent.ErrNothingApplied, []string{"weir apply FILE puts a policy with the links into force"}},
		{agent.ErrSteered, []string{"weir steer --undo puts back what was there, then it can be steered anew"}},
		{agent.ErrNotSteered, []string{"weir status names the links that are"}},
		{plan.ErrNoQueueThere, []string{"weir steer --show tells where each queue's interrupt comes; --irq moves it"}},
		{errNoCgroup2, []string{"mount -t cgroup2 none /sys/fs/cgroup", "under ip netns exec, which hides it: nsenter --net=/run/netns/NAME weir …", "weir doctor tells what else is missing"}},
		{netprio.ErrNetns, []string{"use weir's own programs: leave out via: net_prio, or --via net_prio"}},
		{netprio.ErrNoController, []string{"leave out net_prio: weir's own programs need no such controller"}},
		{netprio.ErrDisabled, []string{"boot without cgroup_no_v1=net_prio, or leave out net_prio"}},
		{unix.EROFS, []string{"its file system is mounted read-only: mount -o remount,rw changes that"}},
		{tc.ErrForeign, []string{"adopt: true of the link lets Weir replace it, and weir reset puts it back"}},
		{workload.ErrGone, []string{"ps -e shows what runs"}},
		{workload.ErrPIDNamespace, []string{"run weir on the host itself, not in a container"}},
		{workload.ErrOutside, []string{"mkdir -p /sys/fs/cgroup/here && echo $$ >/sys/fs/cgroup/here/cgroup.procs, then once more"}},
		{lab.ErrUnknown, []string{"weir lab list"}},
	}
}
