package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// recordVersion is the version of the record's form. A record of another one is
// refused, with the command that mends it.
const recordVersion = 1

// A Record is what a scope remembers between two commands.
type Record struct {
	Version    int                   `json:"version"`
	Generation uint32                `json:"generation"` // the one that counts; 0: nothing is applied
	Applied    *Document             `json:"applied,omitempty"`
	Previous   *Document             `json:"previous,omitempty"` // what a rollback returns to
	IDs        plan.IDs              `json:"ids"`
	Links      map[string]LinkRecord `json:"links,omitempty"`
	Sets       []Set                 `json:"sets,omitempty"`     // of weir set and weir run
	BPFFS      bool                  `json:"bpffs,omitempty"`    // we mounted it
	Groups     map[string]plan.Group `json:"groups,omitempty"`   // of net_prio, as they were made
	Offload    map[string]bool       `json:"offload,omitempty"`  // link -> whether it takes mqprio in hardware, where it was tried
	Watcher    *Process              `json:"watcher,omitempty"`  // gives new interfaces their net_prio entries
	Journal    *Journal              `json:"-"`                  // of a change that has not ended; a file of its own
	Pending    *Pending              `json:"pending,omitempty"`  // a change that waits for weir confirm
	Rollback   *Rollback             `json:"rollback,omitempty"` // the last change that was taken back
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
	Root   plan.Qdisc      `json:"root"`             // what was at the root before
	Saved  json.RawMessage `json:"saved,omitempty"`  // how to put it back, unless the kernel does
}

// A Set is a contract given to a running process, beside the policy.
type Set struct {
	Name     string           `json:"name"` // of its contract
	PID      uint32           `json:"pid,omitempty"`
	Start    uint64           `json:"start,omitempty"`    // start time of the process, against reused numbers
	Selector *policy.Selector `json:"selector,omitempty"` // a cgroup or unit instead of a process
	Priority policy.Priority  `json:"priority"`
	Via      policy.Via       `json:"via,omitempty"`
}

// A Process is told from another of its number by when it started.
type Process struct {
	PID   uint32 `json:"pid"`
	Start uint64 `json:"start"`
}

// A Pending change is taken back at its deadline.
type Pending struct {
	Deadline time.Time `json:"deadline"`
	Guard    int       `json:"guard"` // the process that takes it back
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
	if err := readJSON(s.recordFile(), r); err != nil {
		return nil, err
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("%w (form %d, this weir writes %d)", ErrOtherVersion, r.Version, recordVersion)
	}
	var j Journal
	if err := readJSON(s.journalFile(), &j); err != nil {
		return nil, err
	}
	if j.Verb != "" {
		r.Journal = &j
	}
	return r, nil
}

// Save writes the record, but not its journal.
func (s Scope) Save(r *Record) error { return s.writeJSON(s.recordFile(), r) }

// Forget removes the record, as reset does when nothing is left to remember.
func (s Scope) Forget() error {
	if err := remove(s.recordFile()); err != nil {
		return err
	}
	leftovers, _ := filepath.Glob(filepath.Join(s.Run, temporary))
	for _, l := range leftovers {
		os.Remove(l)
	}
	return nil
}
