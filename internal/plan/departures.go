package plan

import (
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// climbTimes asks for what gives packets their times of departure, and for an fq on each
// link that keeps them until then.
func climbTimes(limit policy.Limit, links []policy.Link, on ground) string {
	switch {
	case limit.Burst != 0:
		return "edt lets no burst of " + limit.Burst.String() + " through"
	case limit.PPS != 0:
		return "edt counts no packets"
	case on.Features.noTimes() != "":
		return on.Features.noTimes()
	}
	for _, l := range links {
		if why := on.keepsNoTimes(l); why != "" {
			return why
		}
	}
	return ""
}

// noTimes says in words what the kernel lacks to give packets their times of departure and to
// keep them until then, "" if nothing.
func (f Features) noTimes() string {
	switch {
	case !f.Qdiscs[string(policy.FQ)]:
		return "kernel has no fq qdisc, which edt waits in"
	case f.lacks(f.TailCalls, FeatureTailCalls):
		return "BPF programs of this kernel can not go on in the one that gives times of departure (no tail calls from functions)"
	}
	return ""
}

// keepsNoTimes says in words why a link can not keep packets until their times of
// departure, "" if it can. HTB expects that whatever has a packet gives it at once.
func (on ground) keepsNoTimes(l policy.Link) string {
	switch l.Scheduler {
	case policy.Auto, policy.Prio, policy.ETS, policy.FQ:
	default:
		return fmt.Sprintf("scheduler %s of link %q keeps no packet until its time of departure", l.Scheduler, l.Name)
	}
	if rate := shaped(l, on.Links[l.Name]); rate != 0 {
		return fmt.Sprintf("htb holds link %q to %s, and keeps no packet until its time of departure", l.Name, rate)
	}
	if workload := on.divided[l.Name]; workload != "" {
		return fmt.Sprintf("htb divides link %q, as workload %q asks, and keeps no packet until its time of departure", l.Name, workload)
	}
	return ""
}

// dividing names, by link, the first workload that asks for a part of it in htb: a share,
// or a limit that htb shall hold.
func dividing(p *policy.Policy) map[string]string {
	divided := map[string]string{}
	note := func(link, workload string) {
		if divided[link] == "" {
			divided[link] = workload
		}
	}
	for _, w := range p.Workloads {
		for link := range w.Contract.Egress.Min {
			note(link, w.Name)
		}
		for _, l := range sendLimits(p, w.Contract.Egress) {
			if l.Method == policy.MethodHTB && len(l.on) == 1 {
				note(l.on[0].Name, w.Name)
			}
		}
	}
	return divided
}

// depart reports whether departure times hold a limit on a link.
func (r LimitRungs) depart(link string) bool {
	for _, of := range r {
		if of[link].Method == policy.MethodEDT || of[EveryLink].Method == policy.MethodEDT {
			return true
		}
	}
	return false
}

// keepsNoTimes says in words why no fq can keep packets in a queue until their times of
// departure, "" if one can.
func (q Queue) keepsNoTimes() string {
	switch {
	case q.Absent():
		return "scheduler none has no queue of Weir's, which would keep a packet until its time of departure"
	case q.Scheduler != policy.Prio && q.Scheduler != policy.ETS && q.Scheduler != policy.FQ:
		return string(q.Scheduler) + " keeps no packet until its time of departure"
	case q.Rate != 0:
		return string(q.Scheduler) + " is below htb here, which keeps no packet until its time of departure"
	}
	return ""
}

// keepTimes puts an fq where packets wait, or says in words why that can not be.
func (r *Rung) keepTimes() string {
	if why := r.keepsNoTimes(); why != "" {
		return why
	}
	uneven := r.uneven()
	r.Lacks = slices.DeleteFunc(r.Lacks, func(lack string) bool { return slices.Contains(uneven, lack) })
	r.Leaf = LeafFQ
	return ""
}

// writtenOverFQ is what puts a packet of a level into its class where an fq keeps it. Before
// Linux 6.7 an fq lets packets of priority 7 go at once, whatever their time: there it is the
// band's number as a class id, in which fq finds no 7; one fq alone, which has no bands then,
// gets another level.
func (q Queue) writtenOverFQ(level policy.Level) uint32 {
	const control = 7 // TC_PRIO_CONTROL, in the lower four bits
	switch {
	case level != control || q.Scheduler == policy.FQ && q.Classes > 1:
		return uint32(level)
	case q.Scheduler == policy.FQ:
		return control - 1
	}
	return RootHandle<<16 | q.bandMinor(int(q.Map[level]))
}

// bandMinor is the minor number of the class of prio and ets that is one class: the most
// urgent is the first.
func (q Queue) bandMinor(class int) uint32 { return uint32(q.Classes - class) }

// ofBand is the inverse of bandMinor.
func (q Queue) ofBand(minor uint32) (class int, ok bool) {
	class = q.Classes - int(minor)
	return class, class >= 0 && class < q.Classes && (q.Scheduler == policy.Prio || q.Scheduler == policy.ETS)
}
