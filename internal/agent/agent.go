package agent

import (
	"errors"
	"time"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/state"
)

// An Agent works on one scope. It holds no state of its own: what two calls at
// once may do to each other is what two processes may.
type Agent struct {
	Scope    state.Scope
	Version  string
	Now      func() time.Time
	Progress func(text string) // called with each step before it runs; may be nil
	// Detach starts this program with one of the arguments that this package
	// names, as a process that outlives the caller and its session.
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
	ErrLoseSSH        = errors.New("the change touches the link that carries your ssh session")
)

func (a *Agent) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

func (a *Agent) room() bpf.Room { return bpf.Room{Dir: a.Scope.Pins, Cgroup: a.Scope.Cgroup} }

// inScope runs fn in the network namespace of the scope's links.
func (a *Agent) inScope(fn func() error) error { return host.InNetns(a.Scope.Netns, fn) }
