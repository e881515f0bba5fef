package observe

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/stat, on every architecture of Go.
const tick = 10 * time.Millisecond

// A spent is how long a CPU did something, by the kernel's account.
type spent struct {
	busy     time.Duration // not idle
	softirqs time.Duration // of all kinds, as most kernels' ticks find them
}

// cpuTimes returns it for each CPU.
func cpuTimes() (map[int]spent, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("read CPU times: %w", err)
	}
	return parseTimes(string(text))
}

func parseTimes(stat string) (map[int]spent, error) {
	times := map[int]spent{}
	for line := range strings.Lines(stat) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.HasPrefix(fields[0], "cpu") || fields[0] == "cpu" {
			continue
		}
		cpu, err := strconv.Atoi(fields[0][len("cpu"):])
		if err != nil {
			return nil, fmt.Errorf("read CPU times: %q is no CPU", fields[0])
		}
		var s spent
		// user, nice, system, idle, iowait, irq, softirq; what a hypervisor takes is nobody's here
		for i, field := range fields[1:8] {
			n, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read CPU times of %s: %w", fields[0], err)
			}
			switch took := time.Duration(n) * tick; i {
			case 3, 4:
			case 6:
				s.softirqs += took
				fallthrough
			default:
				s.busy += took
			}
		}
		times[cpu] = s
	}
	return times, nil
}

// softirqRuns returns how many NET_RX and NET_TX softirqs each CPU has handled.
func softirqRuns() (map[int][2]uint64, error) {
	text, err := os.ReadFile("/proc/softirqs")
	if err != nil {
		return nil, fmt.Errorf("read softirqs: %w", err)
	}
	return parseRuns(string(text))
}

// parseRuns reads a column a CPU, whose numbers the first line tells.
func parseRuns(table string) (map[int][2]uint64, error) {
	runs := map[int][2]uint64{}
	var cpus []int
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		which := slices.Index([]string{"NET_RX:", "NET_TX:"}, append(fields, "")[0])
		switch {
		case cpus == nil:
			for _, name := range fields {
				cpu, err := strconv.Atoi(strings.TrimPrefix(name, "CPU"))
				if err != nil {
					return nil, fmt.Errorf("read softirqs: %q is no CPU", name)
				}
				cpus = append(cpus, cpu)
			}
		case which >= 0:
			for i, field := range fields[1:min(len(fields), len(cpus)+1)] {
				n, err := strconv.ParseUint(field, 10, 64)
				if err != nil {
					return nil, fmt.Errorf("read softirqs: %w", err)
				}
				both := runs[cpus[i]]
				both[which] = n
				runs[cpus[i]] = both
			}
		}
	}
	return runs, nil
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
