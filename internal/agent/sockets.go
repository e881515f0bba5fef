package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/state"
	"github.com/weir-net/weir/internal/workload"
)

// A SocketReport says who holds the memory of TCP, in bytes.
type SocketReport struct {
	SchemaVersion string         `json:"schema_version"`
	Holders       []SocketHolder `json:"holders"` // who holds most comes first
	TCPMemory     plan.TCPMemory `json:"tcp_memory"`
	Warnings      []string       `json:"warnings,omitempty"`
}

// A SocketHolder is a workload with TCP sockets, or those that no workload claims: all
// of them together or, where each of them is told, those of one cgroup.
type SocketHolder struct {
	Workload string `json:"workload"`         // "": no workload claims them
	Cgroup   string `json:"cgroup,omitempty"` // of those, if it is known
	Count    int    `json:"count"`            // of all its sockets
	Held     uint64 `json:"held"`             // by all of them
	plan.SocketMemory
	Memory  *plan.MemoryJudged `json:"memory,omitempty"` // its bound, and what was seen of it; none: it has no bound
	Sockets []SocketUse        `json:"sockets"`          // those that are told, who holds most first
}

// A SocketUse is one TCP socket and what it holds.
type SocketUse struct {
	Protocol  string          `json:"protocol"` // tcp or mptcp
	State     string          `json:"state"`
	Local     string          `json:"local"`
	Peer      string          `json:"peer"` // "": it is not connected
	Processes []SocketProcess `json:"processes"`
	Accepted  bool            `json:"accepted"` // false: it waits for its listener's process, which is told in place of its own
	Cgroup    string          `json:"cgroup,omitempty"`
	Inode     uint64          `json:"inode"` // 0: no process has it
	Held      uint64          `json:"held"`
	plan.SocketMemory
	ReceiveBuffer uint64 `json:"receive_buffer"` // the most that receive may be
	SendBuffer    uint64 `json:"send_buffer"`    // likewise of send
	Unread        uint64 `json:"unread"`         // bytes of data that have arrived in order
	Unacked       uint64 `json:"unacked"`        // bytes of data that were written

	Bound *plan.Holding `json:"bound,omitempty"` // what it has of a bound; none: it is below none

	workload string // "": no workload claims it
}

// A SocketProcess has a socket open.
type SocketProcess struct {
	PID  uint32 `json:"pid"`
	Name string `json:"name"`
}

// SocketQuery says which sockets are told.
type SocketQuery struct {
	Workload string // only this one's; "": everybody's
	All      bool   // also those that nobody claims, and those that hold nothing

	nobodys bool // nothing is applied, so nobody claims any
}

// An UnknownWorkload is a name that no contract in force has.
type UnknownWorkload struct {
	Name  string
	Known []string
}

// Error names it.
func (e *UnknownWorkload) Error() string { return fmt.Sprintf("no workload %q is in force", e.Name) }

// Workloads names what is in force: the workloads of the policy that Weir's programs carry,
// and what was set beside it.
func (a *Agent) Workloads() (names []string, err error) {
	err = a.reading(func(r *state.Record) error {
		names = sortedKeys(r.IDs.Names)
		return nil
	})
	return names, err
}

// Sockets looks at the TCP sockets of all network namespaces that have a process. Without
// a policy nobody claims any, and all that hold something are told.
func (a *Agent) Sockets(ctx context.Context, q SocketQuery) (report *SocketReport, err error) {
	err = a.reading(func(r *state.Record) error {
		s, err := a.enter(ctx, r)
		if errors.Is(err, ErrNothingApplied) && q.Workload == "" {
			s = &scene{Agent: a, record: r}
			s.mounts, err = workload.FindHierarchies()
		}
		if err != nil {
			return err
		}
		defer s.close()
		if _, known := r.IDs.Names[q.Workload]; q.Workload != "" && !known {
			return &UnknownWorkload{q.Workload, sortedKeys(r.IDs.Names)}
		}
		report, err = s.report(ctx, q)
		return err
	})
	return report, err
}

func (s *scene) report(ctx context.Context, q SocketQuery) (*SocketReport, error) {
	memory, err := workload.TCPMemory()
	if err != nil {
		return nil, err
	}
	report := &SocketReport{SchemaVersion: schemaVersion, TCPMemory: memory}
	table, err := s.readSocketTable(ctx)
	if err != nil && (table == nil || !errors.Is(err, fs.ErrPermission)) {
		return nil, err
	}
	if err != nil { // all others are known
		first, _, _ := strings.Cut(err.Error(), "\n")
		report.Warnings = append(report.Warnings, "not all processes could be looked at: "+first)
	}
	if s.record.Applied == nil {
		q.nobodys = true
	}
	bounds, err := s.bounds()
	if err != nil {
		return nil, err
	}
	report.Holders = q.holders(table.uses(s), bounds)
	return report, nil
}

// bounds are those of memory that are in force, by the names of their workloads.
func (s *scene) bounds() (map[string]*plan.MemoryJudged, error) {
	bounds := map[string]*plan.MemoryJudged{}
	if len(s.have.Rules.Memory) > 0 {
		pools, err := s.g.Pools(s.record.IDs.Names)
		if err != nil {
			return nil, err
		}
		for id, bound := range s.have.Rules.Memory {
			bounds[s.nameOf(id)] = &plan.MemoryJudged{Bound: bound, Pool: pools[id]}
		}
	}
	held, pools, err := s.readMemcg(s.record)
	if err != nil {
		return nil, err
	}
	for id, m := range held {
		bounds[s.nameOf(id)] = &plan.MemoryJudged{Bound: m.Bound(), Pool: pools[id]}
	}
	return bounds, nil
}

// holders sorts sockets by who holds them. Who has a bound is told without any.
func (q SocketQuery) holders(uses []SocketUse, bounds map[string]*plan.MemoryJudged) []SocketHolder {
	type key struct{ workload, cgroup string }
	found := map[key]*SocketHolder{}
	for name, m := range bounds {
		if q.Workload == "" || q.Workload == name {
			found[key{workload: name}] = &SocketHolder{Workload: name, Memory: m, Sockets: []SocketUse{}}
		}
	}
	for _, u := range uses {
		if q.Workload != "" && u.workload != q.Workload {
			continue
		}
		apart := q.All || q.nobodys // sockets that nobody claims are told one by one
		of := key{workload: u.workload}
		if u.workload == "" && apart {
			of.cgroup = u.Cgroup
		}
		h := found[of]
		if h == nil {
			h = &SocketHolder{Workload: of.workload, Cgroup: of.cgroup, Sockets: []SocketUse{}}
			found[of] = h
		}
		h.Count++
		h.SocketMemory = h.Plus(u.SocketMemory)
		h.Held = h.SocketMemory.Held()
		if q.All || u.Held > 0 && (u.workload != "" || apart) {
			h.Sockets = append(h.Sockets, u)
		}
	}
	all := make([]SocketHolder, 0, len(found))
	for _, h := range found {
		slices.SortFunc(h.Sockets, func(a, b SocketUse) int {
			return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.Local, b.Local), cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Inode, b.Inode))
		})
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b SocketHolder) int {
		return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Cgroup, b.Cgroup))
	})
	return all
}
