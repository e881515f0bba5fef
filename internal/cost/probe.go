package cost

// A Probe is what a loop that only computes lost on a CPU, as it found itself and as the meter saw it.
type Probe struct {
	SchemaVersion string  `json:"schema_version"`
	CPU           int     `json:"cpu"`
	Seconds       float64 `json:"seconds"`
	Apparent      float64 `json:"apparent_percent"`     // of the CPU's time, that the kernel charged the loop for
	Effective     float64 `json:"effective_percent"`    // that it computed
	Stolen        float64 `json:"stolen_percent"`       // the difference: taken from it in its own name
	Metered       float64 `json:"stolen_percent_meter"` // what interrupts for networking took in its name, by the meter
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
	p.Metered, p.Ksoftirqd = percent(lost.Stolen(), r.At), percent(thread.Stolen(), r.At)
	p.Owners = parties(owners)
	return p
}
