package agent

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/state"
)

// An Agent works on one scope. It holds no state of its own: what two calls at
// once may do to each other is what two processes may.
type Agent struct {
	Scope    state.Scope
	Version  string // of this Weir: what another one found out is found out anew
	Now      func() time.Time
	Progress func(text string) // called with each step before it runs; may be nil
	// Accept is asked before an apply changes anything, under the lock and of the
	// very reading that is then acted on. Its error ends the apply and is returned.
	// nil accepts all.
	Accept func(Proposal) error
	// Detach starts this program with one of the arguments that this package
	// names, as a process that outlives the caller and its session. Without it
	// nothing can be applied until it is confirmed, and new interfaces get no
	// net_prio entries.
	Detach func(args ...string) (pid int, err error)
	// Before is called before each step of a change and may end it with an error.
	// Tests break off there; nil does nothing.
	Before func(step int, text string) error
}

// What a caller has to tell apart. Each is wrapped with what it is about.
var (
	ErrNothingApplied = errors.New("no policy is applied here")
	ErrUnfinished     = errors.New("a change was broken off")
	ErrRolledBack     = errors.New("everything was taken back")
	ErrNotProved      = errors.New("the kernel does not hold what was applied")
	ErrPending        = errors.New("a change waits to be confirmed")
	ErrNothingPending = errors.New("no change waits to be confirmed")
	ErrNoLimits       = errors.New("no limit is possible here")
	ErrNoTimes        = errors.New("no answer can wait here")
	ErrNoBounds       = errors.New("no bound on TCP memory is possible here")
	ErrNoBinding      = errors.New("no socket can be bound to a VRF here")
	ErrLoseSSH        = errors.New("the change touches the link that carries your ssh session")
	ErrCutOff         = errors.New("the change moves the last link with a default route into another routing domain, or changes that route there")
)

// schemaVersion is the version of the JSON forms of this package.
const schemaVersion = "1.0"

func (a *Agent) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

func (a *Agent) room() bpf.Room { return bpf.Room{Dir: a.Scope.Pins, Cgroup: a.Scope.Cgroup} }

// inScope runs fn in the network namespace of the scope's links.
func (a *Agent) inScope(fn func() error) error { return host.InNetns(a.Scope.Netns, fn) }

// locked runs fn with the scope locked for a change and its record loaded. A steering that was
// broken off is taken back before.
func (a *Agent) locked(fn func(*state.Record) error) error {
	return a.with(a.Scope.LockForChange, func(r *state.Record) error {
		if err := a.endBrokenSteering(r); err != nil {
			return err
		}
		return fn(r)
	})
}

// reading runs fn with the record as it is between two changes.
func (a *Agent) reading(fn func(*state.Record) error) error {
	return a.with(a.Scope.LockForReading, fn)
}

func (a *Agent) with(take func() (*state.Lock, error), fn func(*state.Record) error) error {
	lock, err := take()
	if err != nil {
		return err
	}
	defer lock.Unlock()
	r, err := a.Scope.Load()
	if err != nil {
		return err
	}
	return fn(r)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
