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

// lookAround watches the host for a moment before any traffic of ours, and
// warns where other work would disturb the figures.
func (s *session) lookAround(ctx context.Context) error {
	idle, total, err := cpuTimes()
	if err != nil {
		return err
	}
	if err := pause(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	idleNow, totalNow, err := cpuTimes()
	if err != nil {
		return err
	}
	if busy := busyShare(idleNow-idle, totalNow-total); busy > tooBusy {
		s.warn("other work took %.0f %% of the CPUs when the lab began, and spreads its figures; run it again on a quiet host", 100*busy)
	}
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

func busyShare(idle, total uint64) float64 {
	if total == 0 {
		return 0
	}
	return 1 - float64(idle)/float64(total)
}

// cpuTimes reads how long all CPUs together were idle, and how long they were,
// in ticks since the host started.
func cpuTimes() (idle, total uint64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read CPU times: %w", err)
	}
	return parseCPUTimes(string(text))
}

func parseCPUTimes(text string) (idle, total uint64, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("read CPU times: %q is not the sum of all CPUs", line)
	}
	// user nice system idle iowait irq softirq steal; what follows are parts of
	// user and nice.
	for i, field := range fields[1:min(len(fields), 9)] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read CPU times: %w", err)
		}
		total += ticks
		if i == 3 || i == 4 {
			idle += ticks
		}
	}
	return idle, total, nil
}
