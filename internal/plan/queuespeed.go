package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A DeviceReading is what a device has received at one moment, and how its packets come to CPUs.
type DeviceReading struct {
	Link   string
	When   time.Time
	Spread Spread
	Total  Traffic         // as the device counts it
	Queues map[int]Traffic // as its driver counts it; missing where that does not
	// Interrupts are how often the interrupt of a queue came, in the order of CPUs.
	Interrupts map[int][]uint64
	CPUs       []int // the order
}

// A SoftnetReading is how many packets each CPU took out of its backlog and of devices'
// queues, of all devices and namespaces together.
type SoftnetReading map[int]Softnet

// Softnet is what one CPU has done of that.
type Softnet struct {
	Packets    uint64 // handled
	HandedOver uint64 // of these: by RPS, from other CPUs; how often, not how many, as they come in batches
}

// ParseSoftnet reads /proc/net/softnet_stat: hexadecimal numbers, a line for each CPU that is
// on. Before 5.10 a line does not say which, and they are taken to be the first.
func ParseSoftnet(text string) (SoftnetReading, error) {
	const handled, overBy, which = 0, 9, 12
	r := SoftnetReading{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) <= overBy {
			return nil, fmt.Errorf("softnet_stat %q: too few numbers", strings.TrimSpace(line))
		}
		var numbers []uint64
		for _, word := range words {
			n, err := strconv.ParseUint(word, 16, 64)
			if err != nil {
				return nil, fmt.Errorf("softnet_stat: %q is no number", word)
			}
			numbers = append(numbers, n)
		}
		cpu := len(r)
		if len(numbers) > which {
			cpu = int(numbers[which])
		}
		r[cpu] = Softnet{Packets: numbers[handled], HandedOver: numbers[overBy]}
	}
	return r, nil
}

// A QueueSpeed is what one RX queue of a device receives in a second.
type QueueSpeed struct {
	Link      string          `json:"link"`
	Queue     int             `json:"queue"`
	Packets   *float64        `json:"packets_per_second,omitempty"` // missing: the driver does not count them
	Bits      *float64        `json:"bits_per_second,omitempty"`
	Interrupt *InterruptSpeed `json:"interrupt,omitempty"` // missing: none is known
	RPS       CPUs            `json:"rps,omitempty"`       // CPUs that its packets are handed to
}

// InterruptSpeed is where the interrupt of a queue comes, and how often.
type InterruptSpeed struct {
	Number int        `json:"number"`
	Name   string     `json:"name"`
	CPUs   CPUs       `json:"cpus"` // that it comes to, by its affinity
	Came   []CPUSpeed `json:"came"` // where it did
}

// A CPUSpeed is how often something happens on a CPU.
type CPUSpeed struct {
	CPU       int     `json:"cpu"`
	PerSecond float64 `json:"per_second"`
}

// A DeviceSpeed is what a device receives in a second, in all.
type DeviceSpeed struct {
	Link     string     `json:"link"`
	Driver   string     `json:"driver,omitempty"`
	Packets  float64    `json:"packets_per_second"`
	Bits     float64    `json:"bits_per_second"`
	Table    string     `json:"rss_table,omitempty"` // "even", or the queue of each hash
	Rules    []FlowRule `json:"rules,omitempty"`
	Threaded bool       `json:"threaded_napi,omitempty"`
}

// A SoftnetSpeed is what a CPU handles of all devices' packets in a second.
type SoftnetSpeed struct {
	CPU        int     `json:"cpu"`
	Packets    float64 `json:"packets_per_second"`
	HandedOver float64 `json:"rps_per_second"` // times that RPS woke it up
}

// QueueSpeeds compares two readings of a device.
func QueueSpeeds(from, to DeviceReading) (DeviceSpeed, []QueueSpeed) {
	seconds := to.When.Sub(from.When).Seconds()
	d := DeviceSpeed{
		Link: to.Link, Driver: to.Spread.Driver, Table: to.Spread.Table, Rules: to.Spread.Rules, Threaded: to.Spread.Threaded,
		Packets: rise(from.Total.Packets, to.Total.Packets, seconds), Bits: 8 * rise(from.Total.Bytes, to.Total.Bytes, seconds),
	}
	queues := []QueueSpeed{}
	for i, q := range to.Spread.Queues {
		speed := QueueSpeed{Link: to.Link, Queue: i, RPS: q.RPS}
		was, counted := from.Queues[i]
		is, still := to.Queues[i]
		if counted && still {
			packets, bits := rise(was.Packets, is.Packets, seconds), 8*rise(was.Bytes, is.Bytes, seconds)
			speed.Packets = &packets
			if is.Bytes > 0 || is.Packets == 0 {
				speed.Bits = &bits
			}
		}
		if q.Interrupt != nil {
			speed.Interrupt = &InterruptSpeed{Number: q.Interrupt.Number, Name: q.Interrupt.Name, CPUs: q.Interrupt.At, Came: []CPUSpeed{}}
			was, is := from.Interrupts[i], to.Interrupts[i]
			for column := range min(len(was), len(is), len(to.CPUs)) {
				if is[column] > was[column] && slices.Equal(from.CPUs, to.CPUs) {
					speed.Interrupt.Came = append(speed.Interrupt.Came, CPUSpeed{to.CPUs[column], rise(was[column], is[column], seconds)})
				}
			}
		}
		queues = append(queues, speed)
	}
	return d, queues
}

// SoftnetSpeeds compares two readings; CPUs that handled nothing are left out.
func SoftnetSpeeds(from, to SoftnetReading, seconds float64) []SoftnetSpeed {
	speeds := []SoftnetSpeed{}
	for cpu, is := range to {
		was, there := from[cpu]
		if there && is.Packets > was.Packets {
			speeds = append(speeds, SoftnetSpeed{cpu, rise(was.Packets, is.Packets, seconds), rise(was.HandedOver, is.HandedOver, seconds)})
		}
	}
	slices.SortFunc(speeds, func(a, b SoftnetSpeed) int { return a.CPU - b.CPU })
	return speeds
}

// rise is how much a counter rises in a second. Counters of 32 bits go round: what would be
// negative is nothing.
func rise(from, to uint64, seconds float64) float64 {
	if to <= from || seconds <= 0 {
		return 0
	}
	return float64(to-from) / seconds
}
