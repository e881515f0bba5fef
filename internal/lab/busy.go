package lab

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/report"
)

// tooBusy is the share of the CPUs that others may use before a result is not
// to be trusted without a word about it.
const tooBusy = 0.3

// lookAround watches the host before any traffic of ours, for a moment, or for some
// where other work is about to end, and warns where it would disturb the figures.
func (s *session) lookAround(ctx context.Context) error {
	var busy float64
	for range 10 {
		before, err := readCPUTimes()
		if err != nil {
			return err
		}
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		after, err := readCPUTimes()
		if err != nil {
			return err
		}
		if busy = after.since(before).busy(); busy <= tooBusy {
			return nil
		}
	}
	s.busy = true
	s.warn("other work took %.0f %% of the CPUs when the lab began, and spreads its figures; run it again on a quiet host", 100*busy)
	return nil
}

// lookBack warns where what had the line to itself was not the same in every
// repetition: lookAround can not see what began later.
func (s *session) lookBack(arm, metric, words string) {
	if m := report.Summarise("", s.values(arm, metric)); m.Max > 1.02*m.Min {
		s.warn("%s from %.3g to %.3g %s: other work disturbed it, and with it all that is compared; run the lab again on a quiet host",
			words, m.Min, m.Max, s.samples[arm][metric].unit)
	}
}

// cpuTimes is how long all CPUs together did something.
type cpuTimes struct{ idle, softirq, steal, total time.Duration }

// tick is the unit of /proc/stat, on every architecture of Go. What it says of
// softirqs most kernels sample, once in a tick of theirs. Steal is what the host of a virtual machine kept of its CPUs while they
// had something to do, where that host tells.
const tick = 10 * time.Millisecond

func (c cpuTimes) since(before cpuTimes) cpuTimes {
	return cpuTimes{c.idle - before.idle, c.softirq - before.softirq, c.steal - before.steal, c.total - before.total}
}

// busy is the share of the time that the CPUs were not idle; 0 of no time.
func (c cpuTimes) busy() float64 {
	if c.total == 0 {
		return 0
	}
	return 1 - float64(c.idle)/float64(c.total)
}

// readCPUTimes reads the times since the host started.
func readCPUTimes() (cpuTimes, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}, fmt.Errorf("read CPU times: %w", err)
	}
	return parseCPUTimes(string(text))
}

func parseCPUTimes(text string) (c cpuTimes, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return c, fmt.Errorf("read CPU times: %q is not the sum of all CPUs", line)
	}
	// user nice system idle iowait irq softirq steal; what follows are parts of
	// user and nice.
	for i, field := range fields[1:min(len(fields), 9)] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return c, fmt.Errorf("read CPU times: %w", err)
		}
		spent := time.Duration(ticks) * tick
		c.total += spent
		switch i {
		case 3, 4:
			c.idle += spent
		case 6:
			c.softirq += spent
		case 7:
			c.steal += spent
		}
	}
	return c, nil
}
