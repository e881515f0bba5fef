package steer

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/weir-net/weir/internal/plan"
)

// Count reads what the device has received, queue by queue where its driver tells, and how
// its packets come to CPUs.
func (d *Device) Count() (r plan.DeviceReading, err error) {
	r.Link, r.When = d.Name, time.Now()
	if r.Spread, err = d.Read(); err != nil {
		return r, err
	}
	if r.Total.Packets, err = d.number("statistics/rx_packets"); err != nil {
		return r, err
	}
	if r.Total.Bytes, err = d.number("statistics/rx_bytes"); err != nil {
		return r, err
	}
	// Few drivers have the first, some the second, and some neither.
	if r.Queues, err = d.queueStats(); err != nil || len(r.Queues) == 0 {
		if counters, err := d.counters(); err == nil {
			r.Queues = plan.QueueCounts(counters)
		}
	}
	if len(r.Queues) == 0 && len(r.Spread.Queues) == 1 {
		r.Queues = map[int]plan.Traffic{0: r.Total}
	}
	text, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		return r, fmt.Errorf("read interrupts: %w", err)
	}
	table := plan.ParseInterrupts(string(text))
	r.CPUs, r.Interrupts = table.CPUs, map[int][]uint64{}
	for _, l := range table.Lines {
		for i, q := range r.Spread.Queues {
			if q.Interrupt != nil && q.Interrupt.Number == l.Number {
				r.Interrupts[i] = l.Counts
			}
		}
	}
	return r, nil
}

func (d *Device) number(file string) (uint64, error) {
	text, err := d.read(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// Softnet reads what each CPU that is on has handled, of all devices.
func Softnet() (plan.SoftnetReading, error) {
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return nil, fmt.Errorf("read softnet_stat: %w", err)
	}
	return plan.ParseSoftnet(string(text))
}
