package policy

// The least and the most that the TCP sockets of a workload can be held to. Below
// MinTCPMemory one connection can not work: it takes two segments of 64 KiB with their
// bookkeeping to send, a window to receive, and some room to grow. MaxTCPMemory is 1 TiB, which no host gives
// to TCP. Half of MinTCPMemory is the least of soft, so that the default is never below it.
const (
	MinTCPMemory     Size = 256 << 10
	MaxTCPMemory     Size = 1 << 40
	MinTCPMemorySoft Size = MinTCPMemory / 2
)

// A TCPMemory is what the TCP sockets of a workload may hold together, in bytes as the
// kernel counts them: buffers whole, with their bookkeeping, and not the payload in them;
// of the queues to send, to receive and of what came out of order. The zero TCPMemory is
// no bound.
type TCPMemory struct {
	Soft     Size      `json:"soft" jsonschema:"type=string"`      // above it sockets stop growing, and shrink as peers drain them; MinTCPMemorySoft to Max; by memcg 0: there is none
	Max      Size      `json:"max" jsonschema:"type=string"`       // the most of all together, MinTCPMemory to MaxTCPMemory; 0: no bound
	WhenFull WhenFull  `json:"when_full" jsonschema:"type=string"` // what a new connection meets where too little is left below Max
	Via      MemoryVia `json:"via,omitempty"`
}

// A MemoryVia names what holds a bound on TCP memory.
type MemoryVia string

// What can hold one.
const (
	MemoryViaBPF   MemoryVia = ""      // in a file "bpf", "auto" or left out: programs that fit the buffers of sockets
	MemoryViaMemcg MemoryVia = "memcg" // cgroup v1's memory controller, of one cgroup of its hierarchy
)

// String writes the bound as a file has it: "{soft: 64MiB, max: 128MiB, when-full:
// squeeze}", "{max: 128MiB, via: memcg}".
func (t TCPMemory) String() string {
	if t.Via == MemoryViaMemcg {
		return "{max: " + t.Max.String() + ", via: memcg}"
	}
	return "{soft: " + t.Soft.String() + ", max: " + t.Max.String() + ", when-full: " + t.WhenFull.String() + "}"
}

// A WhenFull says what a new connection of a workload meets where what is left below the
// most that its sockets may hold is less than a connection needs.
type WhenFull string

// What a new connection can meet.
const (
	WhenFullSqueeze WhenFull = ""       // in a file "squeeze", or left out: it gets the smallest buffers
	WhenFullRefuse  WhenFull = "refuse" // it is refused
)

// String is the answer as a file has it.
func (w WhenFull) String() string {
	if w == WhenFullSqueeze {
		return "squeeze"
	}
	return string(w)
}

// MarshalText writes the answer as a file has it.
func (w WhenFull) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the answer as a file has it.
func (w *WhenFull) UnmarshalText(text []byte) (err error) {
	*w, err = parseWhenFull(string(text))
	return err
}

// parseWhenFull reads what a new connection meets. The error is a *ValueError.
func parseWhenFull(s string) (WhenFull, error) {
	names := []string{}
	for _, known := range whenFulls() {
		if known.String() == s {
			return known, nil
		}
		names = append(names, known.String())
	}
	return WhenFullSqueeze, &ValueError{"when-full " + quote(s) + " is not known", DidYouMean(s, names, possible(names))}
}

// whenFulls returns what when-full can be, the default first.
func whenFulls() []WhenFull { return []WhenFull{WhenFullSqueeze, WhenFullRefuse} }

// tcpMemory reads what the TCP sockets of a workload may hold. It holds where they are,
// so it needs no link.
func (m *meaning) tcpMemory(raw rawTCPMemory, via Via) TCPMemory {
	if raw.key.kind == absent {
		return TCPMemory{}
	}
	m.notByNetPrio(raw.key, "bound of memory", via)
	t := TCPMemory{Max: m.memoryMax(raw), Via: m.memoryVia(raw)}
	if t.Via == MemoryViaMemcg {
		m.onlyMax(raw)
		return t
	}
	t.Soft = m.memorySoft(raw, t.Max)
	if raw.whenFull.given() {
		var err error
		t.WhenFull, err = parseWhenFull(raw.whenFull.text)
		m.refuse(raw.whenFull.span, err)
	}
	return t
}

// memoryVias are what the key via of a bound can be.
var memoryVias = []string{"auto", "bpf", string(MemoryViaMemcg)}

// memoryVia reads what shall hold the bound.
func (m *meaning) memoryVia(raw rawTCPMemory) MemoryVia {
	switch {
	case !raw.via.given(), raw.via.text == "auto", raw.via.text == "bpf":
		return MemoryViaBPF
	case raw.via.text == string(MemoryViaMemcg):
		return MemoryViaMemcg
	}
	m.report(raw.via.span, "via "+quote(raw.via.text)+" is not known", DidYouMean(raw.via.text, memoryVias, possible(memoryVias)))
	return MemoryViaBPF
}

// onlyMax reports what the memory controller does not know of a bound.
func (m *meaning) onlyMax(raw rawTCPMemory) {
	if raw.soft.given() {
		m.report(raw.soft.span, "memcg knows no soft: the kernel has one limit", "leave soft out, or via")
	}
	if raw.whenFull.given() {
		m.report(raw.whenFull.span, "memcg knows no when-full: the kernel refuses memory, and no connection", "leave when-full out, or via")
	}
}

// memcgMatch reports a bound by the memory controller of anything but one cgroup of its
// hierarchy: it holds one together with all below it, and nothing else. What is wrong with
// the match leaves open what it was meant to be.
func (m *meaning) memcgMatch(raw rawWorkload, match []Selector, c Contract) {
	if c.TCPMemory.Via != MemoryViaMemcg || len(match) == 0 || len(match) < len(raw.match) {
		return
	}
	of := match[0].Cgroup
	if len(match) == 1 && match[0].Kind == KindCgroup && of.Controller == "memory" && !of.Wild() && of.Pattern != "/" {
		return
	}
	m.report(raw.contract.tcpMemory.via.span, "memcg holds one cgroup of the v1 memory hierarchy, with all below it",
		"match it alone, without wildcards, as in cgroup: memory:/batch; or leave via out")
}

// memoryMax reads the most that the sockets may hold, 0 if it is wrong or missing.
func (m *meaning) memoryMax(raw rawTCPMemory) Size {
	if raw.keys.record && !raw.keys.hasAny([]string{"max", "soft"}) {
		m.report(raw.key.span, "tcp-memory has no max", tcpMemoryHelp)
	}
	if !raw.max.given() {
		return 0
	}
	max, err := ParseTCPMemoryMax(raw.max.text)
	m.refuse(raw.max.span, err)
	return max
}

// ParseTCPMemoryMax reads the most that the TCP sockets of a workload may hold together.
// The error is a *ValueError.
func ParseTCPMemoryMax(s string) (Size, error) {
	max, err := ParseSize(s)
	switch {
	case err != nil:
		return 0, err
	case max < MinTCPMemory:
		return 0, &ValueError{"max " + clip(s) + " is below " + MinTCPMemory.String() +
			", what one connection needs: segments of 64KiB to send, a window to receive, and some room", "raise it"}
	case max > MaxTCPMemory:
		return 0, &ValueError{"max " + clip(s) + " is above " + MaxTCPMemory.String() + ", the most that sockets can be held to",
			"lower it, or leave tcp-memory out"}
	}
	return max, nil
}

// memorySoft reads from where on the sockets stop growing: half of max, which is 0 where it
// is wrong or missing, if that is left open.
func (m *meaning) memorySoft(raw rawTCPMemory, max Size) Size {
	if !raw.soft.given() {
		return max / 2
	}
	soft, err := ParseTCPMemorySoft(raw.soft.text, max)
	if err == nil && !raw.keys.has("max") {
		err = &ValueError{"soft " + clip(raw.soft.text) + " of no max: it says where sockets stop growing below one", "add max, or leave tcp-memory out"}
	}
	m.refuse(raw.soft.span, err)
	return soft
}

// ParseTCPMemorySoft reads from where on TCP sockets stop growing that may hold max
// together; a max of 0 is not known. The error is a *ValueError.
func ParseTCPMemorySoft(s string, max Size) (Size, error) {
	soft, err := ParseSize(s)
	switch {
	case err != nil:
		return 0, err
	case soft < MinTCPMemorySoft:
		return 0, &ValueError{"soft " + clip(s) + " is below " + MinTCPMemorySoft.String() + ", the least at which sockets can stop growing",
			"raise it, or leave it out for half of max"}
	case max != 0 && soft > max:
		return 0, &ValueError{"soft " + clip(s) + " is above max, " + max.String(), "lower it, or raise max"}
	}
	return soft, nil
}

// onlyFlows reports a bound on sockets of a workload that has none of its own: packets that
// its flows match are told by their headers, which nobody knows when a socket is made. What
// is wrong with an item of its match leaves open what it was meant to be.
func (m *meaning) onlyFlows(raw rawWorkload, match []Selector) {
	if len(match) == 0 || len(match) < len(raw.match) {
		return
	}
	for _, s := range match {
		if s.Kind != KindFlow {
			return
		}
	}
	for what, key := range map[string]scalar{"tcp-memory": raw.contract.tcpMemory.key, "vrf": raw.contract.vrf} {
		if key.kind != absent {
			m.report(key.span, what+" is of sockets, and workload "+quote(raw.name.text)+
				" matches packets only, by their headers", "select by pid, cgroup, unit, user or exe, or leave "+what+" out")
		}
	}
}

// tcpMemoryHelp shows how the bound is written.
const tcpMemoryHelp = "as in tcp-memory: {max: 128MiB}"
