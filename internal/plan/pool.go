package plan

import (
	"fmt"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Pool is what the TCP sockets of a contract with a bound hold together, as the programs
// know it: sizes in bytes.
type Pool struct {
	May       uint64 `json:"may"`  // what they hold, or may take before anybody is asked again
	Most      uint64 `json:"most"` // the most of that so far
	Sockets   uint64 `json:"sockets"`
	Throttled uint64 `json:"throttled"`        // times that a buffer was made smaller than TCP and its application wanted it
	Squeezed  uint64 `json:"squeezed"`         // connections that did not get what they need to work well
	Refused   uint64 `json:"refused"`          // connections that there was no room for
	Denied    uint64 `json:"denied,omitempty"` // times that memcg gave a socket no memory; it counts none of the four before
}

// A Holding is what one connection below a bound has of it.
type Holding struct {
	Counts   uint64 `json:"counts"`   // bytes that it holds or may take before it is asked again
	Capped   bool   `json:"capped"`   // its buffers are smaller than TCP and its application wanted them
	Squeezed bool   `json:"squeezed"` // they are the smallest there are: there was no room for what it needs to work well
}

// poolTolerance is what a pool may have beyond its bound: many CPUs ask at once, and the
// kernel lets an empty socket take one segment.
const poolTolerance = 10 // percent

// words says what was counted of a bound that something holds.
func (p Pool) words(via policy.MemoryVia) string {
	if via == policy.MemoryViaMemcg {
		text := fmt.Sprintf("%s in use, at most %s since its cgroup was made", human(p.May), human(p.Most))
		if p.Denied > 0 {
			text += fmt.Sprintf(", memory denied %d times", p.Denied)
		}
		return text
	}
	parts := []string{
		fmt.Sprintf("%s in use or free to take, at most %s so far", human(p.May), human(p.Most)),
		fmt.Sprintf("%d connections", p.Sockets),
	}
	for _, count := range []struct {
		n    uint64
		what string
	}{{p.Throttled, "throttled"}, {p.Squeezed, "squeezed"}, {p.Refused, "refused"}} {
		if count.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d times", count.what, count.n))
		}
	}
	return strings.Join(parts, ", ")
}

// human is a size in the largest unit of which it has one.
func human(bytes uint64) string {
	for _, u := range []struct {
		name  string
		worth uint64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= u.worth {
			return fmt.Sprintf("%.1f%s", float64(bytes)/float64(u.worth), u.name)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

// MemoryTerms is what the sockets of a contract may hold, in words; "" if there is no bound.
func MemoryTerms(m policy.TCPMemory) string {
	if m.Max == 0 {
		return ""
	}
	if m.Via == policy.MemoryViaMemcg {
		return fmt.Sprintf("%s at most %s by memcg", PromiseMemory, m.Max)
	}
	text := fmt.Sprintf("%s at most %s, soft %s", PromiseMemory, m.Max, m.Soft)
	if m.WhenFull == policy.WhenFullRefuse {
		text += ", refuse"
	}
	return text
}

// unlikeMemory says how two bounds differ, "" if they do not.
func unlikeMemory(have, want policy.TCPMemory) string {
	told := func(m policy.TCPMemory) string {
		if m.Max == 0 {
			return "none"
		}
		return m.String()
	}
	if have == want {
		return ""
	}
	return fmt.Sprintf("%s %s -> %s", PromiseMemory, told(have), told(want))
}

// memoryOf are the bounds of all contracts that have one.
func memoryOf(p *policy.Policy, ids IDs, explicit []Explicit) map[ContractID]policy.TCPMemory {
	bounds := map[ContractID]policy.TCPMemory{}
	add := func(name string, of policy.Contract) {
		if of.TCPMemory.Max != 0 && of.TCPMemory.Via == policy.MemoryViaBPF {
			bounds[ids.Names[name].ID] = of.TCPMemory
		}
	}
	for _, w := range p.Workloads {
		if w.Via == policy.ViaBPF {
			add(w.Name, w.Contract)
		}
	}
	for _, e := range explicit {
		add(e.Name, e.Contract)
	}
	return bounds
}

// memory judges what the sockets of a contract hold, as far as that is known.
func (j Judgement) memory(m policy.TCPMemory, p Pool, known bool, wrong string) Judgement {
	j.Promise, j.Link, j.Priority, j.Memory = PromiseMemory, EveryLink, policy.Unset, &MemoryJudged{m, p}
	evidence := "read back: " + m.String()
	switch {
	case wrong != "":
		j.Verdict, j.Evidence = Broken, wrong
	case !known:
		j.Verdict, j.Evidence = Unprovable, evidence+"; what its sockets hold could not be read"
	case p.May > uint64(m.Max)/100*(100+poolTolerance):
		j.Verdict, j.Evidence = Broken, evidence+"; "+p.words(m.Via)
	default:
		j.Verdict, j.Evidence = Kept, evidence+"; "+p.words(m.Via)
	}
	return j
}
