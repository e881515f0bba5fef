package plan

import (
	"fmt"
	"strings"

	"github.com/weir-net/weir/internal/policy"
)

// A Verdict says of a promise whether it is kept.
type Verdict string

// The verdicts. Unprovable is a promise that nothing contradicts and nothing
// here can show: the reason is in its evidence.
const (
	Kept       Verdict = "kept"
	Broken     Verdict = "broken"
	Unprovable Verdict = "not provable here"
)

// Traffic is what passed under one contract on one link.
type Traffic struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"` // on the wire, link-layer headers included
}

// A Judgement is one promise held against what the kernel says.
type Judgement struct {
	Workload string       `json:"workload"`
	Link     string       `json:"link"`
	Priority policy.Level `json:"priority"`
	Verdict  Verdict      `json:"verdict"`
	Evidence string       `json:"evidence"`
	Traffic  Traffic      `json:"traffic"`
}

// Judge holds every promise of priority against what was read back. differences
// is what Diff found between the two states.
func Judge(p *policy.Policy, want *Want, differences []Difference, seen map[string]map[ContractID]Traffic) []Judgement {
	wrong := map[string]string{}
	for _, d := range differences {
		if wrong[d.Object] == "" {
			wrong[d.Object] = d.Detail
		}
	}
	var all []Judgement
	for _, w := range p.Workloads {
		for _, l := range p.Links {
			level := w.Contract.Priority.On(l.Name)
			if level == policy.Unset || w.Via != policy.ViaBPF {
				continue
			}
			j := Judgement{Workload: w.Name, Link: l.Name, Priority: level}
			id := want.Contracts[w.Name].ID
			j.Traffic = seen[l.Name][id]
			j.Verdict, j.Evidence = judge(want.Rungs[l.Name], want.Links[l.Name].Rules.Contracts[id], j.Traffic,
				wrong["link "+l.Name], wrong["workload "+w.Name])
			all = append(all, j)
		}
	}
	return all
}

func judge(r Rung, promise Promise, t Traffic, linkWrong, workloadWrong string) (Verdict, string) {
	switch {
	case linkWrong != "":
		return Broken, linkWrong
	case workloadWrong != "":
		return Broken, workloadWrong
	}
	evidence := fmt.Sprintf("read back: %s of %s", r.Describe(promise.Priority), r.Queue)
	if t.Packets > 0 {
		evidence += fmt.Sprintf("; %d packets, %d bytes so far", t.Packets, t.Bytes)
	} else {
		evidence += "; no packet yet"
	}
	if !r.ordered() {
		return Unprovable, evidence + "; " + strings.Join(r.Lacks, "; ")
	}
	return Kept, evidence
}

// ordered reports whether the rung itself keeps strict order, so that placing a
// packet in its class is all that the promise needs.
func (r Rung) ordered() bool {
	switch r.Scheduler {
	case policy.None, policy.FQ:
		return false
	case policy.MQPrio:
		return r.Offload
	}
	return !r.Idle
}
