package observe

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/stat, on every architecture of Go.
const tick = 10 * time.Millisecond

// busyTimes returns how long each CPU was not idle, by the kernel's account.
func busyTimes() (map[int]time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("read CPU times: %w", err)
	}
	return parseBusy(string(text))
}

func parseBusy(stat string) (map[int]time.Duration, error) {
	busy := map[int]time.Duration{}
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		cpu, err := strconv.Atoi(fields[0][len("cpu"):])
		if err != nil {
			return nil, fmt.Errorf("read CPU times: %q is no CPU", fields[0])
		}
		// user, nice, system, idle, iowait, irq, softirq; what a hypervisor takes is nobody's here
		for i, field := range fields[1:8] {
			n, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read CPU times of %s: %w", fields[0], err)
			}
			if i != 3 && i != 4 {
				busy[cpu] += time.Duration(n) * tick
			}
		}
	}
	return busy, nil
}

// squeezes returns how many NET_RX softirqs of each CPU ended before their work was done.
func squeezes() (map[int]uint64, error) {
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return nil, fmt.Errorf("read softnet counters: %w", err)
	}
	return parseSqueezes(string(text))
}

// parseSqueezes reads a line a CPU that is on: the third number is of squeezes, the 13th says
// which CPU; before 5.10 there is none.
func parseSqueezes(stat string) (map[int]uint64, error) {
	found := map[int]uint64{}
	line := 0
	for text := range strings.Lines(stat) {
		fields := strings.Fields(text)
		if len(fields) < 3 {
			continue
		}
		n, err := strconv.ParseUint(fields[2], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("read softnet counters: %w", err)
		}
		cpu := uint64(line)
		if len(fields) >= 13 {
			if cpu, err = strconv.ParseUint(fields[12], 16, 64); err != nil {
				return nil, fmt.Errorf("read softnet counters: %w", err)
			}
		}
		found[int(cpu)] = n
		line++
	}
	return found, nil
}
