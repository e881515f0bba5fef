package cost

import "time"

// Work is what time goes to.
type Work int

// The kinds of work. Times of the first four are measured, those of the others sampled.
const (
	IRQ     Work = iota // hard interrupts that ask for NET_RX
	RX                  // NET_RX softirqs
	TX                  // NET_TX softirqs
	Other               // other softirqs in which packets went: TASKLET, TIMER, HRTIMER
	Send                // what tasks do in sendmsg
	Receive             // in recvmsg
	Thread              // NAPI in a kernel thread of its own
	Works   int  = iota
)

var workNames = [Works]string{"irq", "net_rx", "net_tx", "other_softirqs", "send", "receive", "napi_thread"}

// String returns the name that JSON has too.
func (w Work) String() string { return workNames[w] }

// Times is time by work.
type Times [Works]time.Duration

// Plus returns the sums.
func (t Times) Plus(u Times) Times {
	for w := range t {
		t[w] += u[w]
	}
	return t
}

// minus returns what was added since u.
func (t Times) minus(u Times) Times {
	for w := range t {
		t[w] -= u[w]
	}
	return t
}

// Stolen is what interrupts took: of whoever ran, not of who asked for it.
func (t Times) Stolen() time.Duration { return t[IRQ] + t[RX] + t[TX] + t[Other] }

// Called is what was done in calls and threads of the one who is charged.
func (t Times) Called() time.Duration { return t[Send] + t[Receive] + t[Thread] }

// All is the sum.
func (t Times) All() time.Duration { return t.Stolen() + t.Called() }
