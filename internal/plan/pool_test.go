package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/policy"
)

// TestJudgeMemory holds bounds against what the programs count.
func TestJudgeMemory(t *testing.T) {
	p := parsed(t, "version: 1\nworkloads:\n  held: {match: [{cgroup: /held}], tcp-memory: {soft: 1MiB, max: 4MiB, when-full: refuse}}\n")
	f := hostOf(p)
	w := wanted(t, p, f, IDs{})
	id := w.Contracts["held"].ID
	bound := policy.TCPMemory{Soft: 1 << 20, Max: 4 << 20, WhenFull: policy.WhenFullRefuse}
	const read = "read back: {soft: 1MiB, max: 4MiB, when-full: refuse}; "
	of := func(verdict Verdict, evidence string, pool Pool) Judgement {
		return Judgement{Workload: "held", Link: EveryLink, Promise: PromiseMemory, Priority: policy.Unset, Verdict: verdict, Evidence: evidence,
			Memory: &MemoryJudged{bound, pool}}
	}
	for name, c := range map[string]struct {
		have  func(*State)
		pools map[ContractID]Pool
		want  Judgement
	}{
		"nobody is there": {nil, map[ContractID]Pool{id: {}}, of(Kept, read+"0B in use or free to take, at most 0B so far, 0 connections", Pool{})},
		"in use": {nil, map[ContractID]Pool{id: {1536, 3 << 20, 2, 3, 0, 1, 0}},
			of(Kept, read+"1.5KiB in use or free to take, at most 3.0MiB so far, 2 connections, throttled 3 times, refused 1 times", Pool{1536, 3 << 20, 2, 3, 0, 1, 0})},
		"a little more": {nil, map[ContractID]Pool{id: {4<<20 + 4<<20/11, 5 << 20, 90, 0, 0, 0, 0}},
			of(Kept, read+"4.4MiB in use or free to take, at most 5.0MiB so far, 90 connections", Pool{4<<20 + 4<<20/11, 5 << 20, 90, 0, 0, 0, 0})},
		"too much": {nil, map[ContractID]Pool{id: {5 << 20, 5 << 20, 90, 0, 40, 0, 0}},
			of(Broken, read+"5.0MiB in use or free to take, at most 5.0MiB so far, 90 connections, squeezed 40 times", Pool{5 << 20, 5 << 20, 90, 0, 40, 0, 0})},
		"not read": {nil, nil, of(Unprovable, read+"what its sockets hold could not be read", Pool{})},
		"not running": {func(s *State) { s.Holds = false }, map[ContractID]Pool{id: {}},
			of(Broken, "tcp memory: its programs do not run", Pool{})},
		"another": {func(s *State) { s.Rules.Memory[id] = policy.TCPMemory{Soft: 1 << 20, Max: 2 << 20} }, map[ContractID]Pool{id: {}},
			of(Broken, "tcp-memory {soft: 1MiB, max: 2MiB, when-full: squeeze} -> {soft: 1MiB, max: 4MiB, when-full: refuse}", Pool{})},
	} {
		t.Run(name, func(t *testing.T) {
			have := wanted(t, p, f, IDs{}).State
			if c.have != nil {
				c.have(&have)
			}
			if diff := cmp.Diff([]Judgement{c.want}, Judge(p, w, Diff(have, w), Measured{Pools: c.pools})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if terms := of(Kept, "", Pool{}).Terms(); terms != "tcp-memory at most 4MiB, soft 1MiB, refuse" {
		t.Errorf("terms: %s", terms)
	}
}
