package policy

// The least and the most that can be let through at once: a packet has to fit, and a
// bucket of 64 kbit/s shall not take a week to fill.
const (
	MinBurst Size = 2 << 10
	MaxBurst Size = 1 << 30
)

// burst reads what may pass at once below a limit, 0 if that is left open.
func (m *meaning) burst(raw rawBandwidth) Size {
	if !raw.burst.given() {
		return 0
	}
	burst, err := ParseSize(raw.burst.text)
	switch {
	case err != nil:
	case !raw.keys.has("max"):
		err = &ValueError{"burst " + clip(raw.burst.text) + " of no limit: it says what passes at once below a max", "add max, or leave burst out"}
	case burst < MinBurst:
		err = &ValueError{"burst " + clip(raw.burst.text) + " is below " + MinBurst.String() + ": a packet has to fit into it", "raise it, or leave burst out"}
	case burst > MaxBurst:
		err = &ValueError{"burst " + clip(raw.burst.text) + " is above " + MaxBurst.String() + ", the most that a limit can let through at once", "lower it"}
	}
	if err != nil {
		burst = 0
	}
	m.refuse(raw.burst.span, err)
	return burst
}
