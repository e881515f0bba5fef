package lab

import (
	"context"
	"net/netip"

	"github.com/weir-net/weir/internal/policy"
)

// A Controller puts contracts into force. It has to act in a scope of its own,
// so that nothing outside of the lab is touched.
type Controller interface {
	// Apply puts a policy file into force on the links in a network namespace,
	// named by a path that setns takes, until Reset. A device is bare when it is
	// called: it has no root queue but the kernel's own.
	Apply(ctx context.Context, netns string, policy []byte) error
	// Set raises or lowers a process to a level, its open connections included,
	// and Clear takes that back.
	Set(ctx context.Context, pid int, level policy.Level) error
	Clear(ctx context.Context, pid int) error
	// Reset undoes Apply. Without one before it does nothing.
	Reset(ctx context.Context) error
	// ClassCounters reads what each class of a link has sent. It is called
	// thousands of times, also while Set runs, and should not take longer than a
	// millisecond.
	ClassCounters(ctx context.Context, link string) ([]ClassCount, error)
	// Rung says in a phrase which mechanism keeps the order on a link.
	Rung(link string) string
	// Dropped counts the packets that the limits of the policy have dropped, since Apply gave them.
	Dropped() (uint64, error)
	// NoLimits says why this kernel can not hold what a workload sends to a limit by a
	// method; "" where it can.
	NoLimits(ctx context.Context, by policy.Method) string
	// NoReceiving is NoLimits of what a workload receives.
	NoReceiving(ctx context.Context, by policy.Method) string
	// MendLookups does what weir vrf doctor --fix does for a VRF that Apply has made: root is the
	// directory below which the host's files are. It returns what kept names from being looked up
	// there, and the servers that are asked from now on. UnmendLookups takes that back.
	MendLookups(ctx context.Context, root, vrf string) (cause string, servers []netip.Addr, err error)
	UnmendLookups(root, vrf string) error
	// Cgroup is a directory of the v2 hierarchy, this lab's alone: it makes the
	// cgroups of its workloads there.
	Cgroup() string
}

// A ClassCount is what one class of a link has sent since it was made, and has
// still to send.
type ClassCount struct {
	Class   int            // 0 is the least urgent
	Levels  []policy.Level // the priorities that it carries
	Packets uint64
	Bytes   uint64
	Backlog uint64      // bytes that wait now
	Floor   policy.Rate // what it gets even if more urgent classes want all; 0: nothing
}
