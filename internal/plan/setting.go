package plan

import "fmt"

// A SettingKind says what of a device a setting is.
type SettingKind string

// What of a device says where its packets are handled. The value of each is written as
// the lines here have it; "" is none of it.
const (
	SettingRPS  SettingKind = "rps"  // CPUs that a queue's packets are handed to: a list of CPUs
	SettingRFS  SettingKind = "rfs"  // flows whose CPU a queue remembers: a number
	SettingRSS  SettingKind = "rss"  // the queue of each hash: EvenTable, or numbers of queues
	SettingRule SettingKind = "rule" // a flow rule: RuleThere
	SettingIRQ  SettingKind = "irq"  // CPUs that an interrupt may come to: a list of CPUs
)

// RuleThere is the value of a flow rule that the device has.
const RuleThere = "there"

// A Setting is one thing of a device that says where its packets are handled: what it was
// before Weir changed it, and what it shall be.
type Setting struct {
	Kind   SettingKind `json:"kind"`
	Number int         `json:"number,omitempty"` // of the queue, or of the interrupt
	Rule   *FlowRule   `json:"rule,omitempty"`
	Was    string      `json:"was"`
	Shall  string      `json:"shall"`
}

// Object names what the setting is of.
func (s Setting) Object() string {
	switch s.Kind {
	case SettingRPS:
		return fmt.Sprintf("RPS of queue %d", s.Number)
	case SettingRFS:
		return fmt.Sprintf("flows that queue %d remembers (RFS)", s.Number)
	case SettingRSS:
		return "RSS table"
	case SettingIRQ:
		return fmt.Sprintf("interrupt %d", s.Number)
	}
	return fmt.Sprintf("rule for %s to queue %d", s.Rule.To(), s.Rule.Queue)
}

// Words is a value of the setting for people.
func (s Setting) Words(value string) string {
	switch {
	case s.Kind == SettingRule && value == "":
		return "absent"
	case s.Kind == SettingRPS && value == "":
		return "off"
	case s.Kind == SettingRPS, s.Kind == SettingIRQ:
		return "CPU " + value
	case s.Kind == SettingRSS && value == EvenTable:
		return "even"
	case s.Kind == SettingRSS:
		return "queue " + value
	}
	return value
}

// String says what changes.
func (s Setting) String() string {
	return fmt.Sprintf("%s: %s -> %s", s.Object(), s.Words(s.Was), s.Words(s.Shall))
}
