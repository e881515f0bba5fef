package state

import "time"

// A Proof says when everything was last read back and found as it is wanted. It
// is about what is in force now: a change takes it away before its first step
// and leaves another when it has proved itself.
type Proof struct {
	When time.Time `json:"when"`
	Verb string    `json:"verb"` // of the change that read it back, as a journal has it
}

// SaveProof writes that all is proved. It is small, so that a change which finds
// nothing to do can write it too.
func (s Scope) SaveProof(p Proof) error { return s.writeJSON(s.proofFile(), p) }

// DropProof says that what was proved may not be so any more.
func (s Scope) DropProof() error { return remove(s.proofFile()) }
