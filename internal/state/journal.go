package state

import "time"

// A Journal says what was under way.
type Journal struct {
	Verb  string    `json:"verb"` // "apply", "set", "reset", "rollback", "steer", "steer --undo", or "undo" of what failed
	When  time.Time `json:"when"`
	Step  int       `json:"step"` // steps begun
	Steps int       `json:"steps"`
	Text  string    `json:"text"` // the step that was begun last, in words
}

// SaveJournal writes what is under way. It is small, and written before every
// step of a change.
func (s Scope) SaveJournal(j *Journal) error { return s.writeJSON(s.journalFile(), j) }

// EndJournal says that nothing is under way any more.
func (s Scope) EndJournal() error { return remove(s.journalFile()) }
