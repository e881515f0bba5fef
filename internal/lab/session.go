package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// A session is one run of a lab: its choices, what it holds, and what it has
// measured so far.
type session struct {
	Options
	net     hosts.Net
	closers []func() error // run from the last to the first

	chosen  bool // the rate was, and is not the default
	busy    bool // others had the CPUs when the lab began
	result  report.Result
	arms    []string // in order of appearance
	samples map[string]map[string]*samples
}

// samples of one metric in one arm, in the order of the repetitions.
type samples struct {
	unit   string
	values []float64
}

// onClose adds what must be undone at the end.
func (s *session) onClose(undo func() error) { s.closers = append(s.closers, undo) }

// closing is onClose for things that are closed; it passes an error on.
func closing[T interface{ Close() error }](s *session, thing T, err error) (T, error) {
	if err == nil {
		s.onClose(thing.Close)
	}
	return thing, err
}

// close undoes everything, whatever had been reached. The contracts go first:
// they are on devices that go with the hosts.
func (s *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	all := []error{s.reset(ctx)}
	for _, undo := range slices.Backward(s.closers) {
		all = append(all, undo())
	}
	s.closers = nil
	return errors.Join(append(all, s.net.Close())...)
}

func (s *session) reset(ctx context.Context) error {
	if err := s.Controller.Reset(ctx); err != nil {
		return fmt.Errorf("take policy of lab back: %w", err)
	}
	return nil
}

func (s *session) classCounters(ctx context.Context, link string) ([]ClassCount, error) {
	classes, err := s.Controller.ClassCounters(ctx, link)
	if err != nil {
		return nil, fmt.Errorf("read class counters: %w", err)
	}
	return classes, nil
}

func (s *session) progress(format string, args ...any) { s.Progress(fmt.Sprintf(format, args...)) }

func (s *session) warn(format string, args ...any) {
	s.result.Warnings = append(s.result.Warnings, fmt.Sprintf(format, args...))
}

// measured notes one sample.
func (s *session) measured(arm, metric, unit string, value float64) {
	if s.samples[arm] == nil {
		s.samples[arm] = map[string]*samples{}
		s.arms = append(s.arms, arm)
	}
	if s.samples[arm][metric] == nil {
		s.samples[arm][metric] = &samples{unit: unit}
	}
	all := s.samples[arm][metric]
	all.values = append(all.values, value)
}

func (s *session) values(arm, metric string) []float64 {
	if all := s.samples[arm][metric]; all != nil {
		return all.values
	}
	return nil
}

func sum(values []float64) (all float64) {
	for _, v := range values {
		all += v
	}
	return all
}

// ratio notes how the samples of two arms, or two metrics, compare.
func (s *session) ratio(name string, over, under []float64) (report.Ratio, bool) {
	ratio, ok := report.PairRatios(over, under)
	if ok {
		s.result.Ratios[name] = ratio
	}
	return ratio, ok
}

func (s *session) claim(c ...report.Claim) { s.result.Claims = append(s.result.Claims, c...) }

// inTurn is arms in the order of a repetition. Each time another one is the first,
// so that a host that becomes slower or faster favours none of them.
func inTurn(arms []string, repetition int) []string {
	first := (repetition - 1) % len(arms)
	return slices.Concat(arms[first:], arms[:first])
}

// summarise fills in the arms. An order of names puts some before the others.
func (s *session) summarise(order ...string) {
	for _, arm := range append(slices.Clone(order), s.arms...) {
		known := slices.ContainsFunc(s.result.Arms, func(a report.Arm) bool { return a.Name == arm })
		if known || s.samples[arm] == nil {
			continue
		}
		metrics := map[string]report.Metric{}
		for _, name := range slices.Sorted(maps.Keys(s.samples[arm])) {
			all := s.samples[arm][name]
			metrics[name] = report.Summarise(all.unit, all.values)
		}
		s.result.Arms = append(s.result.Arms, report.Arm{Name: arm, Metrics: metrics})
	}
}

// spread words a ratio as evidence.
func spread(r report.Ratio) string {
	if r.Pairs == 1 {
		return fmt.Sprintf("%.3f in the only pair", r.Value)
	}
	text := fmt.Sprintf("median %.3f, from %.3f to %.3f over %d pairs", r.Value, r.Low, r.High, r.Pairs)
	if m := r.Median; m.Low > r.Low {
		text += fmt.Sprintf(", the true one from %.3f to %.3f with a confidence of %.0f %%", m.Low, m.High, 100*m.Confidence)
	}
	return text
}

// floor is the most that a class gets which does not carry a level, whatever
// happens in the class that does.
func floor(classes []ClassCount, level policy.Level) (most policy.Rate) {
	for _, c := range classes {
		if !slices.Contains(c.Levels, level) {
			most = max(most, c.Floor)
		}
	}
	return most
}

// class returns the class that carries a level.
func class(classes []ClassCount, level policy.Level) (ClassCount, error) {
	for _, c := range classes {
		if slices.Contains(c.Levels, level) {
			return c, nil
		}
	}
	return ClassCount{}, fmt.Errorf("find class of priority %d: none of %d classes carries it", level, len(classes))
}

// pause waits, or returns the reason why the context ended before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
