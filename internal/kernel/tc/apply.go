package tc

import (
	"strings"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// Apply makes the queueing of a link what is wanted, and reads it back: what
// the kernel took but did not keep is an error that wraps [ErrDrift].
func Apply(link int, want plan.Queue, opts Options) error {
	return settle(link, ErrDrift, func() ([]Op, error) { return Steps(link, want, opts) })
}

// Remove deletes our root qdisc; the kernel puts its default in the place. A
// foreign root stays.
func Remove(link int) error { return Apply(link, plan.Queue{Scheduler: policy.None}, Options{}) }

// settle runs the ops that steps gives, and asks it once more: what is left to
// do then is an error that wraps unkept.
func settle(link int, unkept error, steps func() ([]Op, error)) error {
	ops, err := steps()
	if err != nil || len(ops) == 0 {
		return err
	}
	if err := runAll(ops); err != nil {
		return err
	}
	if ops, err = steps(); err != nil {
		return err
	}
	if len(ops) > 0 {
		return refuse(link, unkept, "kernel did not keep what it was told; still to do: %s", opStrings(ops))
	}
	return nil
}

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
