package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// recordVersion is the version of the record's form. A record of another one is
// refused, with the command that mends it.
const recordVersion = 1

// A Record is what a scope remembers between two commands.
type Record struct {
	Version    int                    `json:"version"`
	Generation uint32                 `json:"generation"` // the one that counts; 0: nothing is applied
	Applied    *Document              `json:"applied,omitempty"`
	Previous   *Document              `json:"previous,omitempty"` // what was in force before the change that is under way or pending
	IDs        plan.IDs               `json:"ids"`
	Links      map[string]LinkRecord  `json:"links,omitempty"`
	Tagged     map[uint32]string      `json:"tagged,omitempty"`   // process that the policy names -> its workload
	Sets       []Set                  `json:"sets,omitempty"`     // of weir set and weir run
	Waiting    bool                   `json:"waiting,omitempty"`  // devices of ours for answers that wait are there, or are about to be
	BPFFS      bool                   `json:"bpffs,omitempty"`    // we mounted it
	Groups     map[string]plan.Group  `json:"groups,omitempty"`   // of net_prio, as they were made
	Memcg      map[string]plan.Memcg  `json:"memcg,omitempty"`    // workload -> what the memory controller holds it to
	Offload    map[int]bool           `json:"offload,omitempty"`  // device -> whether it takes mqprio in hardware, where that was tried
	Steered    map[string]SteerRecord `json:"steered,omitempty"`  // link -> where its packets go, for an experiment
	Watcher    *Process               `json:"watcher,omitempty"`  // gives new interfaces their net_prio entries
	Pending    *Pending               `json:"pending,omitempty"`  // a change that waits for weir confirm
	Rollback   *Rollback              `json:"rollback,omitempty"` // the last change that was taken back

	// Files of their own: small, and written more often.
	Journal *Journal `json:"-"` // of a change that has not ended
	Proof   *Proof   `json:"-"` // of what is in force
}

// A Document is a policy as its author wrote it.
type Document struct {
	File string    `json:"file"`
	Text string    `json:"text"`
	When time.Time `json:"when"`
}

// A LinkRecord is what has to be known of a link to leave it as it was.
type LinkRecord struct {
	Index  int             `json:"index"`
	Queue  plan.Queue      `json:"queue"`            // what was built on it
	L2     uint8           `json:"l2"`               // bytes before the network header
	Filter bool            `json:"filter,omitempty"` // attached by clsact, not by tcx
	Clsact bool            `json:"clsact,omitempty"` // clsact was there before us
	Detour bool            `json:"detour,omitempty"` // an ifb of ours stands beside it, or is about to
	Root   plan.Qdisc      `json:"root"`             // what was at the root before
	Saved  json.RawMessage `json:"saved,omitempty"`  // how to put it back, unless the kernel does
}

// A SteerRecord is what has to be known of a link whose packets are steered, to leave it as
// it was. It is on file before the first setting is changed.
type SteerRecord struct {
	Index int       `json:"index"`
	When  time.Time `json:"when"`
	Whole bool      `json:"whole,omitempty"` // all was set, and nothing was put back yet
	plan.Steering
}

// A Set is a contract given to a running process, cgroup or unit, beside the
// policy.
type Set struct {
	Name       string           `json:"name"` // of its contract
	PID        uint32           `json:"pid,omitempty"`
	Start      uint64           `json:"start,omitempty"`    // start time of the process, against reused numbers
	Selector   *policy.Selector `json:"selector,omitempty"` // a cgroup or unit instead of a process
	Priority   policy.Priority  `json:"priority"`
	Max        policy.Rate      `json:"max,omitempty"`         // of egress; 0: no limit
	MaxIngress policy.Rate      `json:"max_ingress,omitempty"` // likewise
	ByIngress  policy.Method    `json:"by_ingress,omitempty"`  // how MaxIngress is held
	TCPMemory  policy.TCPMemory `json:"tcp_memory,omitzero"`
	VRF        string           `json:"vrf,omitempty"` // that new sockets are bound to
	Via        policy.Via       `json:"via,omitempty"`
}

// Limits reports whether the set limits anything.
func (s Set) Limits() bool { return s.Max != 0 || s.MaxIngress != 0 }

// Contract is what the set promises.
func (s Set) Contract() policy.Contract {
	return policy.Contract{
		Priority:  s.Priority,
		Egress:    policy.Egress{Limit: policy.Limit{Max: s.Max}},
		Ingress:   policy.Bandwidth{Limit: policy.Limit{Max: s.MaxIngress, Method: s.ByIngress}},
		TCPMemory: s.TCPMemory,
		VRF:       s.VRF,
	}
}

// Process is the process that was set; without one it is the zero Process.
func (s Set) Process() Process { return Process{s.PID, s.Start} }

// A Process is told from another of its number by when it started.
type Process struct {
	PID   uint32 `json:"pid"`
	Start uint64 `json:"start"` // clock ticks after boot
}

// A Pending change is taken back at its deadline.
type Pending struct {
	Deadline time.Time `json:"deadline"`
	Guard    int       `json:"guard"` // the process that takes it back; Guarded says whether it lives
}

// A Rollback tells those who were absent.
type Rollback struct {
	When   time.Time `json:"when"`
	Reason string    `json:"reason"`
	Proved bool      `json:"proved"` // read back and found as before
}

// ErrOtherVersion says that the record was written by another version of Weir.
var ErrOtherVersion = errors.New("the record was written by another version of weir")

// Load reads the scope's record. A scope without one has an empty record.
func (s Scope) Load() (*Record, error) {
	r := &Record{Version: recordVersion, Links: map[string]LinkRecord{}}
	err := readJSON(s.recordFile(), r)
	if r.Version != recordVersion { // its form may not even read as this one's
		return nil, fmt.Errorf("%w (form %d, this weir writes %d)", ErrOtherVersion, r.Version, recordVersion)
	}
	if err != nil {
		return nil, err
	}
	if err := readJSON(s.journalFile(), &r.Journal); err != nil {
		return nil, err
	}
	if err := readJSON(s.proofFile(), &r.Proof); err != nil {
		return nil, err
	}
	return r, nil
}

// Save writes the record, but not its journal and its proof. A record that says
// nothing is no file.
func (s Scope) Save(r *Record) error {
	if r.empty() {
		return remove(s.recordFile())
	}
	return s.writeJSON(s.recordFile(), r)
}

// empty reports whether the record says nothing that a scope without one would
// not.
func (r *Record) empty() bool {
	if r.Generation != 0 || r.Applied != nil {
		return false
	}
	got, err := json.Marshal(r)
	want, _ := json.Marshal(&Record{Version: recordVersion})
	return err == nil && bytes.Equal(got, want)
}
