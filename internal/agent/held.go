package agent

import (
	"fmt"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
)

// Held returns what a reset would take away, as far as the record knows; none
// means that nothing of Weir's is here.
func (a *Agent) Held() (held []plan.Difference, err error) {
	err = a.reading(func(r *state.Record) error {
		vrfs, err := a.domains().Names()
		for _, name := range vrfs {
			held = append(held, plan.Difference{Op: plan.Remove, Object: "vrf " + name, Detail: "its links are back in the main table, with addresses and routes"})
		}
		held = append(held, heldBy(r, len(held) > 0)...)
		return err
	})
	return held, err
}

// heldBy is Held, of a record, which may not be all that is known.
func heldBy(r *state.Record, more bool) []plan.Difference {
	var held []plan.Difference
	remove := func(object, format string, args ...any) {
		held = append(held, plan.Difference{Op: plan.Remove, Object: object, Detail: fmt.Sprintf(format, args...)})
	}
	for _, name := range sortedKeys(r.Links) {
		l := r.Links[name]
		switch {
		case l.Queue.Scheduler == "": // broken off before it was built
			remove("link "+name, "its own qdisc stays")
		case l.Root.Kind == "":
			remove("link "+name, "%s", l.Queue)
		default:
			remove("link "+name, "%s; %s is back", l.Queue, l.Root.Kind)
		}
	}
	sets := map[string]state.Set{}
	for _, s := range r.Sets {
		sets[s.Name] = s
		if _, named := r.IDs.Names[s.Name]; !named {
			remove(s.Name, "%s", plan.Terms(s.Contract()))
		}
	}
	for _, name := range sortedKeys(r.IDs.Names) {
		if s, ok := sets[name]; ok {
			remove(name, "%s", plan.Terms(s.Contract()))
			continue
		}
		remove("workload "+name, "its packets are nobody's")
	}
	for _, name := range sortedKeys(r.Groups) {
		remove("net_prio group "+name, "its processes are where they were")
	}
	for _, name := range sortedKeys(r.Steered) {
		remove("steering of link "+name, "its packets are handed to CPUs as before")
	}
	if r.Journal != nil && len(held) == 0 && !more {
		remove("unfinished "+r.Journal.Verb, "broken off at %q", r.Journal.Text)
	}
	return held
}
