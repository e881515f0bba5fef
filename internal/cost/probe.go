package cost

import "time"

// A Probe is what a loop that only computes lost on a CPU, as it found itself and as the meter saw it.
type Probe struct {
	SchemaVersion string  `json:"schema_version"`
	CPU           int     `json:"cpu"`
	Seconds       float64 `json:"seconds"`
	Apparent      float64 `json:"apparent_percent"`     // of the CPU's time, that the kernel charged the loop for
	Effective     float64 `json:"effective_percent"`    // that it computed
	Stolen        float64 `json:"stolen_percent"`       // the difference: taken from it in its own name
	Metered       float64 `json:"stolen_percent_meter"` // the same by the meter: what interrupts for networking took, and the meter itself
	Meter         float64 `json:"meter_percent"`        // of that what the meter's own programs took
	Ksoftirqd     float64 `json:"ksoftirqd_percent"`    // what the kernel's thread for softirqs took of the CPU, by the meter
	Owners        []Party `json:"owners"`               // for whose packets the loop was interrupted

	Warnings []string `json:"warnings,omitempty"`
}

// Judge says what a process lost on a CPU while its loop ran, by what was counted meanwhile.
func Judge(cpu int, pid uint32, l Loop, r *Reading, names Names) *Probe {
	p := &Probe{
		SchemaVersion: "1.0", CPU: cpu, Seconds: l.Elapsed.Seconds(), Apparent: l.ApparentPercent(), Effective: l.EffectivePercent(),
		Owners: []Party{},
	}
	p.Stolen = max(0, p.Apparent-p.Effective) // the kernel's own account is not exact
	owners := ledger[PartyID]{}
	var lost, thread Times
	for _, row := range r.Rows {
		switch {
		case row.CPU != cpu:
		case row.Victim.ksoftirqd():
			thread = thread.Plus(row.Times)
		case row.Victim.PID == pid:
			stolen := row.Times
			stolen[Send], stolen[Receive], stolen[Thread] = 0, 0, 0
			lost = lost.Plus(stolen)
			owners.add(names.Owner(row.Owner), stolen, row.Packets)
		}
	}
	p.Meter, p.Ksoftirqd = percent(r.ownOn(cpu), r.At), percent(thread.Stolen(), r.At)
	p.Metered = percent(lost.Stolen(), l.Elapsed) + p.Meter
	p.Owners = parties(owners)
	return p
}

// ownOn is what the meter's programs took on one CPU. The kernel accounts for them on all CPUs together; they run as
// often as there is something to see.
func (r *Reading) ownOn(cpu int) time.Duration {
	var here, all uint64
	for _, c := range r.CPUs {
		n := c.Runs[IRQ] + c.Runs[RX] + c.Runs[TX] + c.Runs[Other]
		all += n
		if c.Number == cpu {
			here = n
		}
	}
	if all == 0 {
		return 0
	}
	return time.Duration(float64(r.Own) * float64(here) / float64(all))
}
