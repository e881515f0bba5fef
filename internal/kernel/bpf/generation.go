package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"github.com/weir-net/weir/internal/plan"
)

// A Generation is one set of programs and tables, complete or being built. Its
// life: Begin, Fill, LoadLink for each link, then AttachSockets and AttachLink
// or Program for each link, and RemoveGeneration of the one before it. Close
// releases the descriptors; what is pinned and attached stays.
type Generation struct {
	Number   uint32
	room     Room
	memory   memory
	tables   map[string]*ebpf.Map // the tables of the rules, by name
	links    map[int]linkTables
	births   []link.Link
	capacity uint32         // for contracts, of each link
	receive  *receiveTables // nil until it is loaded or opened
	bounded  *boundTables   // likewise

	numbered *numbering            // of the budgets, once it is known
	wanted   map[plan.Owner]amount // the limits that it was given

	waiting Waiting // where acknowledgements wait that no link keeps

	later     bool                       // limits that come later are held by departure times
	departing map[departDeparting]uint64 // those of them that are held by departure times, bytes a second
}

// Options says how large the tables are and what the births watch.
type Options struct {
	Cgroups    int  // how many cgroups are expected; later births have room beside them
	Hierarchy1 int  // number of the policy's v1 hierarchy as in /proc/cgroups; 0: none
	Controller int  // index of its controller in the kernel's list, as [ControllerIndex] gives it; -1: none
	Births     bool // follow births and deaths: the kernel has raw tracepoints
	Limits     bool // hold limits that come later: the kernel can hold them
	Times      bool // or else hold those by departure times: its links keep packets until then
	LinkLimits int  // how many limits hold on one link alone, one of bytes and of packets being two

	Links   int             // how many links it will have
	Highest plan.ContractID // the highest number of a contract

	Bound   int                        // of how many contracts new sockets are bound to a VRF
	Domains map[plan.ContractID]Domain // to which; [Generation.AttachSockets] needs to know
}

// Room for what comes between two applies: cgroups that are born, limits of
// weir set and weir run, and what they bind to VRFs.
const (
	spare       = 4096
	spareLimits = 255 // with number 0, which is none, a power of two
	spareBound  = 256
)

// maxLinks is how many links a socket's verdict tells apart.
const maxLinks = int(linkEgressLinkNumberNO_LINK - linkEgressLinkNumberFIRST_LINK)

// ruleTables lists the tables of a generation that are no link's own.
var ruleTables = [...]string{
	linkEgressMapCgroups, linkEgressMapCgroups1, linkEgressMapUsers, linkEgressMapExes, linkEgressMapFlows,
	linkEgressMapTuples, linkEgressMapLimiter, limitMapLinks, limitMapPrefixes, limitMapBlocs, birthsMapBirthPaths, birthsMapBirthPrefixes, birthsMapBirthNames, birthsMapLosses,
	socketCreateMapDomains,
}

// Begin makes the tables of generation n and lets the births write into them:
// a cgroup that is born while the rules are being looked up is claimed already.
// There must be no generation n; after an error there is none.
func (r Room) Begin(n uint32, rules plan.Rules, o Options) (*Generation, error) {
	if err := errors.Join(os.MkdirAll(r.linksDir(), 0o700), os.MkdirAll(r.ingressDir(), 0o700), os.Mkdir(r.generationDir(n), 0o700)); err != nil {
		return nil, fmt.Errorf("create pin directory: %w", err)
	}
	g, err := r.begin(n, rules, o)
	if err != nil {
		return nil, errors.Join(err, r.RemoveGeneration(n))
	}
	return g, nil
}

func (r Room) begin(n uint32, rules plan.Rules, o Options) (*Generation, error) {
	if o.Links > maxLinks {
		return nil, fmt.Errorf("begin generation of %d links: there are numbers for %d", o.Links, maxLinks)
	}
	g, err := r.newGeneration(n, true)
	if err != nil {
		return nil, err
	}
	g.capacity = capacityFor(o.Highest)
	err = g.eachTable(sizes(rules, o), makeTable)
	budgets := o.LinkLimits
	for _, limits := range []map[plan.ContractID]plan.Limit{rules.Limits, rules.Arriving} {
		for _, l := range limits {
			budgets += l.Budgets()
		}
	}
	for _, t := range rules.Toward { // prefixes of one limit share it, so these may be fewer
		budgets += t.Limit.Budgets()
	}
	budgets += len(rules.Blocs)
	if err == nil && (o.Limits || budgets > 0) {
		err = g.makeBudgets(budgets)
	}
	if g.later = o.Times; err == nil && o.Times {
		err = g.ensureDepart()
	}
	if err == nil {
		err = g.fillBirths(rules.Births)
	}
	if err == nil && o.Births {
		err = g.watchBirths(o)
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// Open opens a generation that was published before; ErrAbsent if it was not.
func (r Room) Open(n uint32) (*Generation, error) {
	g, err := r.newGeneration(n, false)
	if err != nil {
		return nil, err
	}
	if err := g.eachTable(nil, openTable); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

func (r Room) newGeneration(n uint32, create bool) (*Generation, error) {
	// Kernels before 5.11 count tables as locked memory, also those of a program
	// that is only asked. Where raising the limit is refused, making the table says so.
	_ = rlimit.RemoveMemlock()
	m, err := r.openMemory(create)
	if err != nil {
		return nil, err
	}
	return &Generation{Number: n, room: r, memory: m, tables: map[string]*ebpf.Map{}, links: map[int]linkTables{}}, nil
}

// eachTable makes or opens the generation's tables.
func (g *Generation) eachTable(size map[string]int, get func(string, *ebpf.MapSpec) (*ebpf.Map, error)) error {
	egress, err := mapsOf(parseEgress)
	if err != nil {
		return err
	}
	births, err := mapsOf(parseBirths)
	if err != nil {
		return err
	}
	limit, err := mapsOf(parseLimit)
	if err != nil {
		return err
	}
	sockets, err := mapsOf(parseSockets)
	if err != nil {
		return err
	}
	// Its tables are those of link_egress, types included: from 5.15 to 6.1 the kernel
	// takes one that has them for another kind than one that has none.
	inner := egress[linkEgressMapContracts].Copy()
	inner.MaxEntries = max(g.capacity, 1)
	for _, name := range ruleTables {
		spec := cmp.Or(egress[name], births[name], limit[name], sockets[name]).Copy()
		if name == limitMapLinks {
			spec.InnerMap = inner
		}
		if n, ok := size[name]; ok {
			spec.MaxEntries = uint32(max(n, 1))
		}
		m, err := get(filepath.Join(g.room.generationDir(g.Number), name), spec)
		if err != nil {
			return err
		}
		g.tables[name] = m
	}
	return nil
}

func sizes(rules plan.Rules, o Options) map[string]int {
	cgroups := 2*o.Cgroups + spare
	size := map[string]int{
		linkEgressMapCgroups:   cgroups,
		linkEgressMapCgroups1:  1,
		linkEgressMapUsers:     len(rules.Users),
		linkEgressMapExes:      len(rules.Exes),
		linkEgressMapFlows:     len(rules.Flows),
		birthsMapBirthPaths:    len(rules.Births.Paths),
		birthsMapBirthPrefixes: len(rules.Births.Prefixes),
		birthsMapBirthNames:    len(rules.Births.Names),
		limitMapPrefixes:       len(rules.Toward),
		limitMapBlocs:          len(rules.Blocs),
		socketCreateMapDomains: o.Bound + spareBound,
		limitMapLinks:          int(linkEgressLinkNumberFIRST_LINK) + o.Links,
	}
	if rules.Controller1 != "" {
		size[linkEgressMapCgroups1] = cgroups
	}
	return size
}

// shared makes a program use the tables that exist, and fits its own
// declarations to their size.
func (g *Generation) shared(spec *ebpf.CollectionSpec) *ebpf.CollectionOptions {
	all := map[string]*ebpf.Map{
		linkEgressMapIdentities:    g.memory.identities,
		linkEgressMapVerdicts:      g.memory.verdicts,
		limitMapPaces:              g.memory.paces,
		socketIngressMapWindows:    g.memory.windows,
		socketIngressMapHandshakes: g.memory.handshakes,
		limitMapBudgets:            g.memory.budgets,
		limitMapCredits:            g.memory.credits,
		departMapDepartures:        g.memory.departures,
		departMapTurns:             g.memory.turns,
		socketCreateMapTasks:       g.memory.tasks,
		tcpMemoryMapPools:          g.memory.pools,
		tcpMemoryMapHoldings:       g.memory.holdings,
	}
	for name, m := range g.tables {
		all[name] = m
	}
	used := map[string]*ebpf.Map{}
	for name, s := range spec.Maps {
		if m, ok := all[name]; ok {
			s.MaxEntries = m.MaxEntries()
			used[name] = m
		}
	}
	return &ebpf.CollectionOptions{MapReplacements: used, Cache: kernelTypes}
}

// Close releases the descriptors. What is pinned or attached stays.
func (g *Generation) Close() {
	g.memory.Close()
	for _, m := range g.tables {
		m.Close()
	}
	for _, t := range g.links {
		t.Close()
	}
	for _, l := range g.births {
		l.Close()
	}
	if g.receive != nil {
		g.receive.Close()
	}
	if g.bounded != nil {
		g.bounded.Close()
	}
}
