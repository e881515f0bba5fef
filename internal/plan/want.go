package plan

import (
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Want is the state that a policy asks for on this host, and what has to be
// said about it.
type Want struct {
	State
	IDs        IDs
	Rungs      map[string]Rung              // link -> its rung
	LimitRungs LimitRungs                   // how each limit of what workloads send is held
	Received   ReceiveRungs                 // and of what they receive
	OwnRungs   map[string]OwnRungs          // link -> how its own limits are held
	Before     map[string]Qdisc             // link -> its root qdisc now
	Live       Live                         // how limits are held that weir set and weir run give
	Unheld     map[string]map[string]string // explicit contracts -> PromiseEgress or PromiseIngress that nothing holds -> why, in words
	Astray     map[string]string            // contracts of weir set and weir run whose VRF is not there -> its name
	// Unfollowed are patterns whose later matches wait for the next apply.
	Unfollowed []policy.Selector
	// Unbound are limits that do not bind all that is below their cgroups.
	Unbound []Unbound
	// PIDs are the processes that policy names, with their workloads.
	PIDs map[uint32]string

	workloads map[string]*policy.Workload
}

// An Explicit contract was given to a running process, beside the policy.
type Explicit struct {
	Name     string
	Contract policy.Contract
}

// Wanted turns a policy into the state that it asks for. It returns every
// reason why this host can not give it, in order of position. ids are the
// contracts of the last apply; explicit contracts live on beside the policy's.
func Wanted(p *policy.Policy, f Facts, ids IDs, explicit []Explicit) (*Want, []policy.Diagnostic) {
	errs := Check(p, f)
	if len(errs) > 0 {
		return nil, errs
	}
	names := make([]string, 0, len(p.Workloads)+len(explicit))
	workloads := make(map[string]*policy.Workload, len(p.Workloads))
	for i := range p.Workloads {
		if w := &p.Workloads[i]; w.Via == policy.ViaBPF {
			names = append(names, w.Name)
			workloads[w.Name] = w
		}
	}
	for _, e := range explicit {
		names = append(names, e.Name)
	}
	if len(names) > MaxContracts {
		return nil, []policy.Diagnostic{tooMany(p, len(names))}
	}
	w := &Want{
		State:      State{Links: map[string]LinkState{}, Groups: map[string]Group{}},
		IDs:        ids.Assign(names),
		Rungs:      map[string]Rung{},
		Before:     map[string]Qdisc{},
		LimitRungs: HowLimited(p, f),
		Received:   HowReceived(p, f),
		OwnRungs:   map[string]OwnRungs{},
		Unheld:     map[string]map[string]string{},
		PIDs:       map[uint32]string{},

		workloads: workloads,
	}
	w.Contracts = w.IDs.Names
	w.VRFs = vrfsOf(p, f)
	w.bind(p, f, explicit)
	w.IDs.Shares, w.IDs.Toward = map[string]map[string]int{}, ids.towardNumbers(p)
	for _, l := range p.Links {
		numbers := ids.shareNumbers(p, l.Name, w.LimitRungs)
		if len(numbers) > 0 {
			w.IDs.Shares[l.Name] = numbers
		}
		demand := Demand{sharesOf(p, l.Name, w.LimitRungs, numbers), w.LimitRungs.depart(l.Name) || w.Received.depart(l.Name)}
		rung, _ := Choose(l, demand, f.Links[l.Name], f.Features)
		rung.Queue = rung.Queue.Normal() // as it will be read back
		w.Rungs[l.Name] = rung
		w.Before[l.Name] = f.Links[l.Name].Root
	}
	w.prepareTimes(explicit, f.Features)
	explicit = w.liveLimits(p, explicit, f)
	w.queueAnswers(p, explicit, ids.Shares[WaitingRoom])
	charged := w.Received.named(w.LimitRungs.outsideClasses(p))
	for _, l := range p.Links {
		rung, own := w.Rungs[l.Name], ownRungs(l, f)
		if len(own) > 0 {
			w.OwnRungs[l.Name] = own
		}
		rules := linkRules(charged, own.paced(l), rung.Queue, f.Links[l.Name], w.IDs, explicit)
		w.Links[l.Name] = LinkState{
			Index: f.Links[l.Name].Index, Queue: rung.Queue,
			Attached: true, Ingress: !rules.Ingress.none(), Rules: rules, Policed: own.policed(l), Detour: own.detour(l, f.Features),
		}
	}
	errs = w.addRules(p, f)
	if policy.Errors(errs).Sort(); len(errs) > 0 {
		return nil, errs
	}
	w.Rules.Limits, w.Rules.Arriving = limitsOf(charged, w.IDs, explicit)
	w.Rules.Toward = towardOf(p, w.IDs)
	w.Rules.Blocs = w.blocs(charged)
	w.Receives = len(w.Rules.Arriving) > 0
	w.Rules.Memory = memoryOf(p, w.IDs, explicit)
	w.Holds = len(w.Rules.Memory) > 0
	w.Memcg = memcgOf(p, w.IDs)
	w.Unbound = w.unbound(p, charged, f)
	for _, wl := range p.Workloads {
		if wl.Via == policy.ViaNetPrio {
			w.Groups[wl.Name] = Group{Default: wl.Contract.Priority.Default, PerLink: wl.Contract.Priority.PerLink}
		}
	}
	return w, nil
}

// label puts a contract's selectors into words.
func (w *Want) label(name string) string {
	workload, ok := w.workloads[name]
	if !ok {
		return "processes and sockets with its tag"
	}
	texts := make([]string, len(workload.Match))
	for i, s := range workload.Match {
		texts[i] = s.String()
	}
	return strings.Join(texts, " or ")
}
