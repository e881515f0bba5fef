package agent

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"path/filepath"
	"strings"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// A scene is all that an explanation is drawn from.
type scene struct {
	*Agent
	record  *state.Record
	g       *bpf.Generation
	sockets *bpf.Sockets
	have    plan.State // links as their promises and filters, without their queues
	tasks   map[uint32]uint32
	names   map[plan.ContractID]string
	mounts  workload.Hierarchies
	limits  plan.LimitRungs   // of what workloads send
	receive plan.ReceiveRungs // of what they receive
}

// explain sets the scene for fn. Without a policy it returns ErrNothingApplied.
func (a *Agent) explain(ctx context.Context, fn func(*scene) error) error {
	return a.reading(func(r *state.Record) error {
		s, err := a.enter(ctx, r)
		if err != nil {
			return err
		}
		defer s.close()
		if err := s.readLinks(); err != nil {
			return err
		}
		if s.limits, s.receive, err = a.howLimited(ctx, r); err != nil {
			return err
		}
		return fn(s)
	})
}

// enter sets the scene by the rules that are in force: whose something is can be told,
// and not yet what that means on a link. The caller closes it.
func (a *Agent) enter(ctx context.Context, r *state.Record) (*scene, error) {
	if err := ctx.Err(); err != nil { // the caller gave up waiting for a change
		return nil, err
	}
	if r.Generation == 0 || r.Applied == nil {
		return nil, ErrNothingApplied
	}
	s := &scene{Agent: a, record: r, names: map[plan.ContractID]string{}}
	for name, c := range r.IDs.Names {
		s.names[c.ID] = name
	}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *scene) open() (err error) {
	if s.g, err = s.Agent.open(s.record); err != nil {
		return err
	}
	if s.sockets, err = s.room().Sockets(); err != nil {
		return err
	}
	s.have = plan.State{Contracts: s.record.IDs.Names, Links: map[string]plan.LinkState{}}
	if s.have.Rules, err = s.g.Rules(); err != nil {
		return err
	}
	p, err := s.parse(s.record.Applied)
	if err != nil {
		return err
	}
	s.have.Rules.Controller1 = plan.Controller1(withSets(p, s.record.Sets)) // no table tells
	if s.have.Memcg, _, err = s.readMemcg(s.record); err != nil {
		return err
	}
	if s.have.Bound, err = s.readBound(s.g); err != nil {
		return err
	}
	if len(s.have.Bound) > 0 {
		if s.have.VRFs, err = s.readVRFs(); err != nil {
			return err
		}
	}
	if s.tasks, err = s.sockets.Tasks(); err != nil {
		return err
	}
	s.mounts, err = workload.FindHierarchies()
	return err
}

func (s *scene) close() {
	if s.g != nil {
		s.g.Close()
	}
	if s.sockets != nil {
		s.sockets.Close()
	}
}

// readLinks asks what is in force on the links that are there: their promises, and what
// filters and queues beside them hold them to.
func (s *scene) readLinks() error {
	for link, l := range s.record.Links {
		rules, err := readRules(s.g, l)
		if err != nil {
			continue
		}
		have := plan.LinkState{Index: l.Index, Queue: l.Queue, Rules: rules}
		err = s.inScope(func() (err error) {
			if have.Policed, err = readPoliced(l.Index); err != nil {
				return err
			}
			have.Detour, err = tc.ReadDetour(l.Index)
			return err
		})
		if err != nil {
			return err
		}
		s.have.Links[link] = have
	}
	return nil
}

// draw asks the rules.
func (s *scene) draw(subject string, of plan.Subject) *Explanation {
	x := &Explanation{SchemaVersion: schemaVersion, Subject: subject, Reasons: plan.Explain(of, s.have), Promises: []string{}}
	if len(x.Reasons) > 0 {
		x.Workload = x.Reasons[0].Workload
	}
	id := s.record.IDs.Names[x.Workload].ID
	for _, link := range sortedKeys(s.have.Links) {
		l := s.have.Links[link]
		p, ok := l.Rules.Contracts[id]
		if !ok {
			p.Priority = plan.Keep
		}
		x.Promises = append(x.Promises, link+": "+l.Queue.Describe(p.Priority))
		if p.Here != (plan.Limit{}) {
			x.Promises = append(x.Promises, link+": "+p.Here.Promise())
		}
		if l.Rules.Egress != (plan.Limit{}) {
			terms := append([]string{l.Rules.Egress.Promise(), "with all else that leaves by it"}, s.have.WeightOn(l.Index, x.Reasons)...)
			x.Promises = append(x.Promises, link+": "+strings.Join(terms, ", "))
		}
		for _, limit := range l.Policed.Egress {
			x.Promises = append(x.Promises, link+": egress "+limit.ByPolice()+", with all else that leaves by it")
		}
		for _, limit := range l.Arriving() {
			x.Promises = append(x.Promises, link+": ingress "+limit+", with all else that arrives by it")
		}
	}
	if l, ok := s.have.Rules.Limits[id]; ok {
		x.Promises = append(x.Promises, "all links together: "+l.Promise())
	}
	for _, toward := range s.have.Rules.TowardTerms(id) {
		x.Promises = append(x.Promises, "all links together: "+plan.PromiseEgress+" "+toward)
	}
	x.Limits = append(s.limits.Told(x.Workload), s.receive.Told(x.Workload)...)
	if l, ok := s.have.Rules.Arriving[id]; ok {
		x.Promises = append(x.Promises, "sockets of this host: "+plan.PromiseIngress+" "+l.String())
	}
	if m, ok := s.have.Rules.Memory[id]; ok {
		x.Promises = append(x.Promises, "sockets of this host: "+plan.MemoryTerms(m))
	}
	if m, ok := s.have.Memcg[id]; ok {
		x.Promises = append(x.Promises, "cgroup memory:"+m.Path+": "+plan.MemoryTerms(m.Bound()))
	}
	if name, ok := s.have.Bound[id]; ok {
		x.Promises = append(x.Promises, "new sockets of this host: "+plan.BoundTerms(name)+" ("+s.have.VRFs[name].Staying(nil).String()+"); those that are open stay where they are")
	}
	return x
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
	if c := s.have.Rules.Controller1; c != "" {
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
	of := s.remembered(s.subject(p), socket)
	if cgroup != 0 {
		if at, err := workload.CgroupPath(s.mounts.V2, cgroup); err == nil {
			of.Cgroups = s.lineage(at)
		}
	}
	of.Packet = packetOf(uint8(socket.Protocol), socket.Local, socket.Remote)
	ends := socket.Local.String()
	if socket.Remote.IsValid() {
		ends += " " + socket.Remote.String()
	}
	x := s.draw(fmt.Sprintf("socket %s (process %d)", ends, p.PID), of)
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

// remembered is the subject that a socket of a process is, by what is remembered of its
// maker: by the kernel, and by the kernel side if anything is applied.
func (s *scene) remembered(of plan.Subject, socket workload.Socket) plan.Subject {
	of.UID = socket.UID
	if s.sockets == nil {
		return of
	}
	if i, err := s.sockets.Identity(socket.FD); err == nil {
		of.Tag = i.Tag
		if i.Exe != (plan.ExeID{}) && i.Exe != of.Exe {
			of.Exe, of.ExePath = i.Exe, "of its maker"
		}
	}
	return of
}

// packetOf is what a connected socket sends; nil of one that is not connected.
func packetOf(protocol uint8, local, remote netip.AddrPort) *plan.Packet {
	if !remote.IsValid() {
		return nil
	}
	return &plan.Packet{Protocol: protocol, Source: local, Dest: remote, Ports: true}
}

// owned explains a socket of a process, nil if the process has it not.
func (s *scene) owned(p workload.Process, entry workload.SocketEntry) (*Explanation, error) {
	for socket, err := range workload.Sockets(p) {
		if err != nil {
			return nil, err
		}
		var x *Explanation
		if socket.Inode == entry.Inode {
			x = s.socket(p, socket, entry.Cgroup)
		}
		socket.Close()
		if x != nil {
			return x, nil
		}
	}
	return nil, nil
}
