package agent

import (
	"fmt"

	"github.com/weir-net/weir/internal/state"
)

// LinkNames are the links under contract, as the record knows them.
func (a *Agent) LinkNames() ([]string, error) {
	r, err := a.Scope.Load()
	if err != nil {
		return nil, err
	}
	return sortedKeys(r.Links), nil
}

// Rung says by what the order on a link is kept; "" if it is under no contract.
func (a *Agent) Rung(link string) string {
	l, err := a.link(link)
	if err != nil {
		return ""
	}
	return l.Queue.String()
}

// link finds a link under contract, or wraps ErrNothingApplied.
func (a *Agent) link(name string) (state.LinkRecord, error) {
	r, err := a.Scope.Load()
	if err != nil {
		return state.LinkRecord{}, err
	}
	l, ok := r.Links[name]
	if !ok {
		return l, fmt.Errorf("link %s: %w", name, ErrNothingApplied)
	}
	return l, nil
}
