package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/policy"
)

// A limiter holds what a device sends of a workload to a limit, by the means of an arm of the
// limiters lab.
type limiter struct {
	*session
	line   hosts.Plug
	match  string            // the selector of the workload
	leaf   hosts.Leaf        // of HTB, on this kernel; "" where that is absent
	absent map[string]string // arm -> why this kernel has it not
}

// weirs are the arms that a policy makes, and what else stands in theirs.
var weirs = map[string]struct {
	scheduler policy.Scheduler
	method    policy.Method
}{
	"edt":  {policy.FQ, policy.MethodEDT},
	"weir": {policy.None, policy.MethodPace},
}

func (l *limiter) policy(arm string, limit policy.Rate) string {
	how := weirs[arm]
	return fmt.Sprintf("version: 1\nlinks:\n  %s: {scheduler: %s}\nworkloads:\n  limited:\n    match: [{%s}]\n    egress: {max: %s, method: %s}\n",
		l.line.Device, how.scheduler, l.match, limit, how.method)
}

// lookFor finds the arms of policies that this kernel has not; what others lack shows when they are
// made.
func (l *limiter) lookFor(ctx context.Context) {
	for arm, how := range weirs {
		if why := l.Controller.NoLimits(ctx, how.method); why != "" {
			l.absent[arm] = why
		}
	}
}

// unlessLacking passes on an error of an arm, but for that of a kernel which has it not, as the first repetition
// finds: the arm is absent then.
func (l *limiter) unlessLacking(arm string, repetition int, err error) error {
	if lacking, ok := errors.AsType[hosts.Lacking](err); ok && repetition == 1 {
		l.absent[arm] = lacking.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("arm %s: %w", arm, err)
	}
	return nil
}

// order is the arms that this kernel has, in the order of a repetition.
func (l *limiter) order(repetition int) []string {
	return inTurn(slices.DeleteFunc(slices.Clone(limitersInfo.Arms), func(arm string) bool { return l.absent[arm] != "" }), repetition)
}

// under runs fn while an arm's means holds the workload to a limit.
func (l *limiter) under(ctx context.Context, arm string, limit policy.Rate, fn func() error) error {
	var err error
	undo := l.line.Unlimit
	switch arm {
	case "ifb_htb":
		l.leaf, err = l.line.LimitByIfb(uint64(limit))
	case "tc_police":
		err = l.line.LimitByPolice(uint64(limit))
	case "htb":
		l.leaf, err = l.line.LimitByHTB(uint64(limit))
	case "edt", "weir":
		err = l.Controller.Apply(ctx, l.line.Host.Netns(), []byte(l.policy(arm, limit)))
		undo = func() error { return l.reset(ctx) }
	}
	if err != nil {
		return err
	}
	if arm == "weir" {
		l.result.Environment.Rung = l.Controller.Rung(l.line.Device)
	}
	return errors.Join(fn(), undo())
}
