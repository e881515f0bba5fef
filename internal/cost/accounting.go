package cost

// Accounting is where the kernel itself puts the time of interrupts.
type Accounting string

// The ways of accounting.
const (
	// By the tick: a task pays for a softirq that the tick finds in it. This is Debian's way.
	ByTick Accounting = "tick"
	// By the clock, at each interrupt (CONFIG_IRQ_TIME_ACCOUNTING): no task pays.
	ByIRQ Accounting = "irq_time"
)

// Misleads says what top shows wrongly where the kernel accounts so.
func (a Accounting) Misleads() string {
	if a == ByIRQ {
		return "the kernel takes interrupts out of the times of tasks (CONFIG_IRQ_TIME_ACCOUNTING): top shows them as hi and si, and as nobody's"
	}
	return "the kernel finds softirqs by its tick only: top shows what interrupts take as the time of the task that they interrupt"
}
