package agent

import (
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// uses says of each socket what it holds and whose it is.
func (t *socketTable) uses(s *scene) []SocketUse {
	c := claimants{scene: s, explainer: plan.NewExplainer(s.have), cgroups: map[uint64][]plan.CgroupMatch{}, known: map[claimKey]string{}}
	all := make([]SocketUse, 0, len(t.sockets))
	for _, socket := range t.sockets {
		all = append(all, t.use(socket, &c))
	}
	return all
}

func (t *socketTable) use(s tableSocket, c *claimants) SocketUse {
	u := SocketUse{
		Protocol: "tcp", State: s.State, Local: s.Local.String(), Processes: []SocketProcess{}, Accepted: s.Accepted(),
		Inode: s.Inode, Held: s.Memory.Held(), SocketMemory: s.Memory,
		ReceiveBuffer: s.ReceiveBuffer, SendBuffer: s.SendBuffer, Unread: s.Unread, Unacked: s.Unacked,
		Bound: s.Holding,
	}
	if s.MPTCP {
		u.Protocol = "mptcp"
	}
	if s.Remote.IsValid() {
		u.Peer = s.Remote.String()
	}
	// What waits to be accepted has all from its listener that rules ask for.
	inode, uid := s.Inode, s.UID
	if !u.Accepted {
		if l, ok := t.acceptor(s); ok {
			inode, uid = l.inode, l.uid
		}
	}
	of := plan.Subject{}
	if user := t.users[inode]; user != nil && len(user.processes) > 0 {
		of, u.Processes = user.subject, user.processes
	} else if u.Accepted {
		of = noted(s.Identity)
	}
	if inode != 0 || uid != 0 { // of a socket that nobody has, most kernels say 0
		of.UID, of.HasUID = uid, true
	}
	if near := c.lineage(s.Cgroup); near != nil {
		of.Cgroups = near
	}
	if len(of.Cgroups) > 0 {
		u.Cgroup = of.Cgroups[0].Path
	}
	of.Packet = packetOf(unix.IPPROTO_TCP, s.Local, s.Remote)
	if u.workload = c.of(of); inode == 0 && s.Generation == c.scene.record.Generation && s.Generation != 0 {
		u.workload = c.scene.names[s.Contract] // how its packets go: nobody is there who could be asked
	}
	return u
}

// noted is what is remembered of the maker of a socket that no process has any more.
func noted(i bpf.Identity) plan.Subject {
	of := plan.Subject{Tag: i.Tag, Exe: i.Exe}
	of.Cgroup1.ID = i.Cgroup1
	return of
}

// claimants finds out which workloads claim subjects, most of which are alike.
type claimants struct {
	scene     *scene
	explainer plan.Explainer
	cgroups   map[uint64][]plan.CgroupMatch
	known     map[claimKey]string
}

// A claimKey is all of a subject but the packet, by which rules are asked last.
type claimKey struct {
	tag             uint32
	cgroup, cgroup1 uint64
	uid             uint32
	hasUID          bool
	exe             plan.ExeID
}

// lineage is a cgroup, by its id, with its ancestors; nil where it is gone or not known.
func (c *claimants) lineage(id uint64) []plan.CgroupMatch {
	if id == 0 {
		return nil
	}
	all, known := c.cgroups[id]
	if !known {
		if at, err := workload.CgroupPath(c.scene.mounts.V2, id); err == nil {
			all = c.scene.lineage(at)
		}
		c.cgroups[id] = all
	}
	return all
}

// of is the workload that claims a subject; "" is none.
func (c *claimants) of(s plan.Subject) string {
	k := claimKey{tag: s.Tag, cgroup1: s.Cgroup1.ID, uid: s.UID, hasUID: s.HasUID, exe: s.Exe}
	if len(s.Cgroups) > 0 {
		k.cgroup = s.Cgroups[0].ID
	}
	name, known := c.known[k]
	if !known {
		alike := s
		alike.Packet = nil
		name = winner(c.explainer.Explain(alike))
		c.known[k] = name
	}
	if name == "" && s.Packet != nil {
		name = winner(c.explainer.Explain(s))
	}
	return name
}

func winner(all []plan.Reason) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].Workload
}
