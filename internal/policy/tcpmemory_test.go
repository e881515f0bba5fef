package policy

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// tcpMemoryOf reads the bound of a policy's only workload.
func tcpMemoryOf(text string) (TCPMemory, error) {
	p, err := Parse("p.yaml", []byte("version: 1\nworkloads: {w: {match: [{port: 80}, {pid: 1}], tcp-memory: "+text+"}}\n"))
	if err != nil {
		return TCPMemory{}, err
	}
	return p.Workloads[0].Contract.TCPMemory, nil
}

// What is left out is filled in.
func TestTCPMemory(t *testing.T) {
	for text, want := range map[string]TCPMemory{
		"{max: 128MiB}":                       {Soft: 64 << 20, Max: 128 << 20},
		"{max: 256KiB}":                       {Soft: MinTCPMemorySoft, Max: MinTCPMemory},
		"{max: 262145B}":                      {Soft: 128 << 10, Max: 262145},
		"{max: 1024GiB, soft: 1.5MiB}":        {Soft: 3 << 19, Max: MaxTCPMemory},
		"{max: 1MiB, soft: 1MiB}":             {Soft: 1 << 20, Max: 1 << 20},
		"{max: 1MiB, when-full: squeeze}":     {Soft: 1 << 19, Max: 1 << 20, WhenFull: WhenFullSqueeze},
		"{when-full: \"refuse\", max: 2MiB}":  {Soft: 1 << 20, Max: 2 << 20, WhenFull: WhenFullRefuse},
		"{max: 1MiB, via: auto}":              {Soft: 1 << 19, Max: 1 << 20},
		"{max: 1MiB, via: bpf}":               {Soft: 1 << 19, Max: 1 << 20},
		"{soft: \"128KiB\", max: \"0.5MiB\"}": {Soft: 128 << 10, Max: 512 << 10},
	} {
		if got, err := tcpMemoryOf(text); err != nil || got != want {
			t.Errorf("%s is %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestTCPMemoryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := drawTCPMemory(t)
		if back, err := tcpMemoryOf(bound.String()); err != nil || back != bound {
			t.Fatalf("%s is %s, %v", bound, back, err)
		}
		text, err := json.Marshal(bound)
		if err != nil {
			t.Fatal(err)
		}
		var back TCPMemory
		if err := json.Unmarshal(text, &back); err != nil || back != bound {
			t.Fatalf("%s is %s, %v", text, back, err)
		}
	})
}

func drawTCPMemory(t *rapid.T) TCPMemory {
	max := Size(rapid.Uint64Range(uint64(MinTCPMemory), uint64(MaxTCPMemory)).Draw(t, "most"))
	return TCPMemory{
		Soft:     Size(rapid.Uint64Range(uint64(MinTCPMemorySoft), uint64(max)).Draw(t, "soft")),
		Max:      max,
		WhenFull: rapid.SampledFrom(whenFulls()).Draw(t, "when full"),
	}
}

func TestWhenFullRefuses(t *testing.T) {
	var w WhenFull
	if err := w.UnmarshalText([]byte("drop")); err == nil {
		t.Errorf("drop is %v", w)
	}
}
