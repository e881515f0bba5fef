package main

import (
	"strings"

	"github.com/weir-net/weir/internal/testutil"
)

// A promise is a row of the page.
type promise struct {
	id   testutil.Promise
	text string
	// ladder holds the rungs, the best first; empty where there is one way only.
	ladder []string
	// mounts says that the promise depends on how cgroups are mounted, so that it
	// has a place in the second table.
	mounts bool
}

// The order of a link and the hook at its egress have several rungs.
var (
	queues = []string{"mqprio", "prio", "ets", "htb", "fq"}
	hooks  = []string{"tcx", "cls_bpf"}
)

// needs holds the feature that each rung stands on.
var needs = map[string]string{
	"mqprio": "mqprio qdisc", "prio": "prio qdisc", "ets": "ets qdisc", "htb": "htb qdisc", "fq": "fq qdisc",
	"tcx": "tcx", "cls_bpf": "bpf classifier", "pace": "BPF atomics", "edt": "fq qdisc", "police": "police action", "ifb": "ifb link",
}

var promises = []promise{
	{testutil.Order, "Strict order on a full line", queues[1:], false}, // mqprio orders in hardware only
	{testutil.Follow, "A running connection follows each change of its priority", queues, false},
	{testutil.Local, "Sockets are claimed by cgroup, user and executable", hooks, true},
	{testutil.Tag, "A process is claimed with its open sockets and its children", hooks, true},
	{testutil.Births, "Cgroups that are born later are claimed", nil, true},
	{testutil.V1Path, "Sockets are claimed by a path of cgroup v1", nil, true},
	{testutil.NetPrio, "Priorities without BPF, by the v1 net_prio controller", nil, true},
	{testutil.Forwarded, "Packets are claimed by their headers", hooks, false},
	{testutil.Limit, "A limit is kept without a queue", hooks, false},
	{testutil.LimitQueued, "A limit of one link is kept in a queue", []string{"edt", "htb"}, false},
	{testutil.LimitOfLink, "A limit of a link itself is kept", []string{"pace", "police", "ifb"}, false},
	{testutil.Receive, "What a workload receives is held to a limit", []string{"edt", "htb", "pace"}, false},
	{testutil.Memory, "What TCP sockets hold in memory is bounded", nil, false},
	{testutil.VRF, "A link moves into a VRF with all that it has, and its connections live on", nil, false},
	{testutil.Drift, "Status names what others have changed", nil, false},
	{testutil.Undo, "Killed at any step, apply is finished or undone without a trace", nil, false},
}

// rows lists what a run is asked for: all, or what depends on how cgroups are
// mounted where that is what its name names.
func (r Run) rows() (rows []promise) {
	for _, p := range promises {
		if p.mounts || !r.otherMounts() {
			rows = append(rows, p)
		}
	}
	return rows
}

// otherMounts reports whether the run is one with other cgroup mounts than the
// usual, such as "6.1 hybrid".
func (r Run) otherMounts() bool { return strings.Contains(r.Name, " ") }
