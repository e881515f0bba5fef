package plan

import (
	"regexp"
	"strconv"
	"strings"
)

// An InterruptLine is one line of /proc/interrupts.
type InterruptLine struct {
	Number int
	Counts []uint64 // in the order of CPUs
	Names  []string // of those that handle it
}

// An InterruptTable is /proc/interrupts: the CPUs that have a column, and the numbered lines.
type InterruptTable struct {
	CPUs  []int
	Lines []InterruptLine
}

// ParseInterrupts reads /proc/interrupts. Lines without a number, such as those of timers,
// are left out.
func ParseInterrupts(text string) InterruptTable {
	var t InterruptTable
	head, rest, _ := strings.Cut(text, "\n")
	for _, word := range strings.Fields(head) {
		if cpu, err := strconv.Atoi(strings.TrimPrefix(word, "CPU")); err == nil {
			t.CPUs = append(t.CPUs, cpu)
		}
	}
	for line := range strings.SplitSeq(rest, "\n") {
		number, columns, found := strings.Cut(line, ":")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		words := strings.Fields(columns)
		if !found || err != nil || len(words) < len(t.CPUs) {
			continue
		}
		l := InterruptLine{Number: n}
		for _, word := range words[:len(t.CPUs)] {
			count, _ := strconv.ParseUint(word, 10, 64)
			l.Counts = append(l.Counts, count)
		}
		if words = words[len(t.CPUs):]; len(words) > 0 {
			words = words[1:] // the chip
		}
		for len(words) > 0 && wiring.MatchString(words[0]) {
			words = words[1:]
		}
		for name := range strings.SplitSeq(strings.Join(words, " "), ", ") {
			if name != "" {
				l.Names = append(l.Names, name)
			}
		}
		t.Lines = append(t.Lines, l)
	}
	return t
}

// wiring is what stands between the chip of an interrupt and its names: 1-edge, 45 Level.
var wiring = regexp.MustCompile(`^(\d+|Edge|Level|\d*-(edge|level|fasteoi))$`)

// A Port is by what the interrupts of a device are known.
type Port struct {
	Link    string       // its name
	Bus     string       // its address there, as 0000:d8:00.0
	Numbers map[int]bool // of the interrupts that its bus says are its own; none if it does not say
}

// queueNames are how drivers name the interrupt of an RX queue, behind the name of the link
// or the driver: eth0-TxRx-3, virtio2-input.3, mlx5_comp3@pci:…, eth0-rx-3, eth0-fp-3, eth0-q3-rx.
var queueNames = regexp.MustCompile(`^(?:.*[-_.:])?(?:txrx|rxtx|tx-rx|rx|input|comp|fp|q|queue)[-_.]?(\d+)(?:-rx)?$`)

// onlyNumbered is a name of a link and a number: eth0-3.
var onlyNumbered = regexp.MustCompile(`^-(\d+)$`)

// QueueInterrupts finds the interrupts of a device's RX queues by their names. Those of a
// driver that names them in another way are missing.
func QueueInterrupts(lines []InterruptLine, p Port) map[int]InterruptLine {
	found := map[int]InterruptLine{}
	var whole []InterruptLine // for all that the device has to tell
	for _, l := range lines {
		for _, name := range l.Names {
			rest, named := strings.CutPrefix(name, p.Link)
			named = named && (rest == "" || !isWord(rest[0]))
			if p.Bus != "" && strings.HasSuffix(name, "@pci:"+p.Bus) {
				named = true
			}
			if len(p.Numbers) > 0 && !p.Numbers[l.Number] || len(p.Numbers) == 0 && !named {
				continue
			}
			rest, _, _ = strings.Cut(strings.ToLower(rest), "@")
			match := queueNames.FindStringSubmatch(rest)
			if match == nil && named {
				match = onlyNumbered.FindStringSubmatch(rest)
			}
			switch {
			case match != nil:
				if q, err := strconv.Atoi(match[1]); err == nil {
					found[q] = l
				}
			case named && rest == "":
				whole = append(whole, l)
			}
		}
	}
	// Next to queues' own, the one with the link's name alone tells of the carrier.
	if len(found) == 0 && len(whole) == 1 {
		found[0] = whole[0]
	}
	return found
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
