package tc

import (
	"strings"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// Apply makes the queueing of a link what is wanted, and reads it back: what
// the kernel took but did not keep is an error that wraps [ErrDrift].
func Apply(link int, want plan.Queue, opts Options) error {
	ops, err := Steps(link, want, opts)
	if err != nil {
		return err
	}
	if err := runAll(ops); err != nil || len(ops) == 0 {
		return err
	}
	if ops, err = Steps(link, want, opts); err != nil {
		return err
	}
	if len(ops) > 0 {
		return refuse(link, ErrDrift, "kernel did not keep what it was told; still to do: %s", opStrings(ops))
	}
	return nil
}

// Remove deletes our root qdisc; the kernel puts its default in the place. A
// foreign root stays.
func Remove(link int) error { return Apply(link, plan.Queue{Scheduler: policy.None}, Options{}) }

func runAll(ops []Op) error {
	for _, op := range ops {
		if err := op.Run(); err != nil {
			return err
		}
	}
	return nil
}

func opStrings(ops []Op) string {
	s := make([]string, len(ops))
	for i, op := range ops {
		s[i] = op.String()
	}
	return strings.Join(s, "; ")
}
