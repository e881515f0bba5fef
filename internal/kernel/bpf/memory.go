package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// memory is what outlives generations: what is known of sockets, processes and
// limits.
type memory struct {
	identities, verdicts, arrivals, tasks, paces, windows, handshakes, budgets, credits, departures, turns, pools, holdings *ebpf.Map
}

// ErrAbsent says that nothing of Weir's is pinned.
var ErrAbsent = errors.New("nothing is pinned")

// ErrOtherVersion says that what is pinned was made by a Weir whose tables have
// another shape. Only removing it helps: [Room.Remove] does not look inside.
var ErrOtherVersion = errors.New("pinned by another version of weir")

// openMemory opens the pinned memory; with create it makes what is missing.
func (r Room) openMemory(create bool) (m memory, err error) {
	egress, err := mapsOf(parseEgress)
	if err != nil {
		return m, err
	}
	sockets, err := mapsOf(parseSockets)
	if err != nil {
		return m, err
	}
	limit, err := mapsOf(parseLimit)
	if err != nil {
		return m, err
	}
	receive, err := mapsOf(parseReceive)
	if err != nil {
		return m, err
	}
	depart, err := mapsOf(parseDepart)
	if err != nil {
		return m, err
	}
	bounded, err := mapsOf(parseMemory)
	if err != nil {
		return m, err
	}
	// A socket has one answer for what it sends and one for what it receives.
	received := egress[linkEgressMapVerdicts].Copy()
	received.Name = "arrivals"
	var absent error
	open := func(spec *ebpf.MapSpec) *ebpf.Map {
		if err != nil {
			return nil
		}
		path := filepath.Join(r.Dir, spec.Name)
		t, failed := openTable(path, spec)
		if errors.Is(failed, ErrAbsent) && create {
			t, failed = makeTable(path, spec)
		}
		if errors.Is(failed, ErrAbsent) {
			absent = failed // another one may be of another version, which says more
		} else {
			err = failed
		}
		return t
	}
	m.identities = open(egress[linkEgressMapIdentities])
	m.verdicts = open(egress[linkEgressMapVerdicts])
	m.arrivals = open(received)
	m.tasks = open(sockets[socketCreateMapTasks])
	m.paces = open(limit[limitMapPaces])
	m.windows = open(receive[socketIngressMapWindows])
	m.handshakes = open(receive[socketIngressMapHandshakes])
	m.budgets = open(limit[limitMapBudgets])
	m.credits = open(limit[limitMapCredits])
	m.departures = open(depart[departMapDepartures])
	m.turns = open(depart[departMapTurns])
	m.pools = open(bounded[tcpMemoryMapPools])
	m.holdings = open(bounded[tcpMemoryMapHoldings])
	if err == nil {
		err = absent
	}
	if err != nil {
		m.Close()
		return memory{}, err
	}
	return m, nil
}

// Close releases the descriptors.
func (m memory) Close() {
	m.identities.Close()
	m.verdicts.Close()
	m.arrivals.Close()
	m.tasks.Close()
	m.paces.Close()
	m.windows.Close()
	m.handshakes.Close()
	m.budgets.Close()
	m.credits.Close()
	m.departures.Close()
	m.turns.Close()
	m.pools.Close()
	m.holdings.Close()
}

// openTable opens a pinned table of any size that has the shape of spec.
func openTable(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w", path, ErrAbsent)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	shape := spec.Copy()
	shape.MaxEntries = m.MaxEntries()
	if err := shape.Compatible(m); err != nil {
		m.Close()
		return nil, fmt.Errorf("open %s: %w: %w", path, ErrOtherVersion, err)
	}
	return m, nil
}

func makeTable(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("create table %s of %d entries: %w", spec.Name, spec.MaxEntries, err)
	}
	if err := m.Pin(path); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin %s: %w", path, err)
	}
	return m, nil
}
