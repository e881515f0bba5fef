package agent

import (
	"context"
	"fmt"
	"path"
	"path/filepath"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// An Explanation says which rule a process, a socket or a packet hits, and why.
type Explanation struct {
	SchemaVersion string        `json:"schema_version"`
	Subject       string        `json:"subject"`
	Workload      string        `json:"workload"` // "" if no workload claims it
	Reasons       []plan.Reason `json:"reasons"`  // all rules that fit, the winner first
	Promises      []string      `json:"promises"` // what that means, a link each
	Kernel        string        `json:"kernel"`   // what the kernel itself says of it
	Agrees        *bool         `json:"agrees"`   // whether that is what the rules say; null if it says nothing
	Sockets       []Explanation `json:"sockets,omitempty"`
}

// A scene is all that an explanation is drawn from.
type scene struct {
	*Agent
	ctx     context.Context
	record  *state.Record
	policy  *policy.Policy
	g       *bpf.Generation
	sockets *bpf.Sockets
	rules   plan.Rules
	tasks   map[uint32]uint32
	names   map[plan.ContractID]string
	mounts  workload.Hierarchies
}

func (a *Agent) explain(ctx context.Context, fn func(*scene) error) error {
	return a.reading(func(r *state.Record) error {
		if r.Generation == 0 || r.Applied == nil {
			return ErrNothingApplied
		}
		s := &scene{Agent: a, ctx: ctx, record: r, names: map[plan.ContractID]string{}}
		var err error
		if s.policy, err = a.parse(r.Applied); err != nil {
			return err
		}
		if s.g, err = a.room().Open(r.Generation); err != nil {
			return err
		}
		defer s.g.Close()
		if s.sockets, err = a.room().Sockets(); err != nil {
			return err
		}
		defer s.sockets.Close()
		if s.rules, err = s.g.Rules(); err != nil {
			return err
		}
		if s.tasks, err = s.sockets.Tasks(); err != nil {
			return err
		}
		if s.mounts, err = workload.FindHierarchies(); err != nil {
			return err
		}
		for name, c := range r.IDs.Names {
			s.names[c.ID] = name
		}
		return fn(s)
	})
}

// ExplainPID explains what a process' next socket gets, and each of its open
// sockets.
func (a *Agent) ExplainPID(ctx context.Context, pid uint32) (*Explanation, error) {
	var x *Explanation
	err := a.explain(ctx, func(s *scene) error {
		p, err := workload.ReadProcess(pid)
		if err != nil {
			return err
		}
		x = s.draw(fmt.Sprintf("process %d (%s)", pid, p.Name), s.subject(p))
		x.Kernel = "no tag of its own"
		if tag := s.tasks[pid]; tag != 0 {
			x.Kernel = "tagged for " + s.nameOfTag(tag)
		}
		for socket, err := range workload.Sockets(p) {
			if err != nil {
				return err
			}
			x.Sockets = append(x.Sockets, *s.socket(p, socket, 0))
			socket.Close()
		}
		return nil
	})
	return x, err
}

// ExplainSocket explains one socket of the scope's network namespace.
func (a *Agent) ExplainSocket(ctx context.Context, spec workload.SocketSpec) (*Explanation, error) {
	var x *Explanation
	err := a.explain(ctx, func(s *scene) error {
		var found []workload.SocketEntry
		err := a.inScope(func() (err error) {
			found, err = workload.FindSockets(ctx, spec)
			return err
		})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("explain %s: no such socket here", spec)
		}
		owners, err := workload.Owners(ctx, found[0].Inode)
		if err != nil {
			return err
		}
		for _, p := range owners {
			for socket, err := range workload.Sockets(p) {
				if err != nil {
					return err
				}
				if socket.Inode == found[0].Inode {
					x = s.socket(p, socket, found[0].Cgroup)
				}
				socket.Close()
			}
			if x != nil {
				return nil
			}
		}
		return fmt.Errorf("explain %s: no process has it open any more", spec)
	})
	return x, err
}

// ExplainFlow explains a packet that has no socket here, and has the kernel
// classify it by the tables that are in force.
func (a *Agent) ExplainFlow(ctx context.Context, p plan.Packet, text string) (*Explanation, error) {
	var x *Explanation
	err := a.explain(ctx, func(s *scene) error {
		x = s.draw("flow "+text, plan.Subject{Packet: &p})
		id, err := s.g.Classify(p.Frame())
		if err != nil {
			return err
		}
		x.kernelSays(s.nameOf(id))
		return nil
	})
	return x, err
}

// draw asks the rules.
func (s *scene) draw(subject string, of plan.Subject) *Explanation {
	x := &Explanation{
		SchemaVersion: "1.0", Subject: subject, Reasons: plan.Explain(of, s.rules, s.record.IDs.Names), Promises: []string{},
	}
	if len(x.Reasons) > 0 {
		x.Workload = x.Reasons[0].Workload
	}
	for _, link := range sortedKeys(s.record.Links) {
		l := s.record.Links[link]
		promises, err := s.g.Promises(l.Index)
		if err != nil {
			continue
		}
		id := s.record.IDs.Names[x.Workload].ID
		p, ok := promises[id]
		if !ok {
			p.Priority = plan.Keep
		}
		x.Promises = append(x.Promises, link+": "+l.Queue.Describe(p.Priority))
	}
	return x
}

// kernelSays notes the kernel's own answer and whether it is the same.
func (x *Explanation) kernelSays(workload string) {
	agrees := workload == x.Workload
	x.Agrees = &agrees
	x.Kernel = "says the same"
	if !agrees {
		x.Kernel = fmt.Sprintf("says %q", orNobody(workload))
	}
}

func orNobody(workload string) string {
	if workload == "" {
		return "nobody's"
	}
	return workload
}

// nameOf names a contract's workload; "" is nobody.
func (s *scene) nameOf(id plan.ContractID) string {
	if id == plan.Unclassified {
		return "unclassified"
	}
	return s.names[id]
}

func (s *scene) nameOfTag(tag uint32) string {
	for name, c := range s.record.IDs.Names {
		if c.Tag() == tag {
			return name
		}
	}
	return "a contract that is gone"
}

// subject is what the kernel side would see of a socket that the process makes
// now.
func (s *scene) subject(p workload.Process) plan.Subject {
	of := plan.Subject{
		Tag: s.tasks[p.PID], UID: p.UID, HasUID: true, Exe: p.Exe.ID, ExePath: p.Exe.Path,
		Cgroups: s.lineage(p.Cgroup2),
	}
	if c := s.rules.Controller1; c != "" {
		of.Cgroup1.Path = p.Cgroup1[c]
		of.Cgroup1.ID, _ = workload.CgroupID(filepath.Join(s.mounts.V1[c], of.Cgroup1.Path))
	}
	return of
}

// lineage is a v2 cgroup and its ancestors up to the root.
func (s *scene) lineage(at string) []plan.CgroupMatch {
	var all []plan.CgroupMatch
	for path.IsAbs(at) {
		if id, err := workload.CgroupID(filepath.Join(s.mounts.V2, at)); err == nil {
			all = append(all, plan.CgroupMatch{Path: at, ID: id})
		}
		if at == "/" {
			break
		}
		at = path.Dir(at)
	}
	return all
}

// socket explains an open socket of a process. cgroup is its own, which may be
// another than its owner's; 0 if it is not known.
func (s *scene) socket(p workload.Process, socket workload.Socket, cgroup uint64) *Explanation {
	of := s.subject(p)
	if i, err := s.sockets.Identity(socket.FD); err == nil {
		of.Tag = i.Tag
		if i.Exe != (plan.ExeID{}) && i.Exe != of.Exe {
			of.Exe, of.ExePath = i.Exe, "of its maker"
		}
	}
	if cgroup != 0 {
		if at, err := workload.CgroupPath(s.mounts.V2, cgroup); err == nil {
			of.Cgroups = s.lineage(at)
		}
	}
	if socket.Remote.IsValid() {
		of.Packet = &plan.Packet{
			Protocol: uint8(socket.Protocol), Source: socket.Local, Dest: socket.Remote, Ports: true,
		}
	}
	x := s.draw(fmt.Sprintf("socket %s %s (process %d)", socket.Local, socket.Remote, p.PID), of)
	id, generation, known := s.sockets.Verdict(socket.FD)
	switch {
	case !known:
		x.Kernel = "has not decided: no packet yet, or it looks at each one"
	case generation != s.record.Generation:
		x.Kernel = "decided under an older policy, and asks again at the next packet"
	default:
		x.kernelSays(s.nameOf(id))
	}
	return x
}
