package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/weir-net/weir/internal/host"
)

// WorkerArgument is the first argument with which a Worker starts its own
// executable again: a main that finds it hands the rest to WorkerMain.
const WorkerArgument = "lab-traffic-worker"

// A Worker is a process of its own that sends, inside of a cgroup and a network
// namespace. It ends with its parent: its standard input is then at its end.
type Worker struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan answer
}

// An order is a line to the worker, an answer one from it.
type order struct {
	Verb       string        `json:"verb"` // send, flood, alternate, stuff, stop, resent, connect, ask, move, talk, speak, hang up, echo, receive, received, pass, passed, watch or watched
	To         string        `json:"to,omitempty"`
	Other      string        `json:"other,omitempty"`   // where every other turn goes
	Senders    int           `json:"senders,omitempty"` // streams, or sockets of a flood
	Congestion string        `json:"congestion,omitempty"`
	Pace       uint64        `json:"pace,omitempty"` // bit/s
	Size       int           `json:"size,omitempty"` // bytes of a datagram, a request or all that is written into a connection
	Rounds     int           `json:"rounds,omitempty"`
	Ordinary   bool          `json:"ordinary,omitempty"`
	Cgroup     string        `json:"cgroup,omitempty"` // a directory
	Every      time.Duration `json:"every,omitempty"`
	For        time.Duration `json:"for,omitempty"`
}

type answer struct {
	Error    string    `json:"error,omitempty"`
	Sent     uint64    `json:"sent,omitempty"` // bytes or datagrams that the kernel took
	Resent   Resent    `json:"resent,omitzero"`
	Latency  Latency   `json:"latency,omitzero"`
	Spoken   []Spoken  `json:"spoken,omitempty"`
	Passed   []Passed  `json:"passed,omitempty"`
	Received Received  `json:"received,omitzero"`
	Absences []Absence `json:"absences,omitempty"`
}

// StartWorker starts a worker that is born in a cgroup (a v2 directory; ""
// stays in the caller's) and in a namespace. Close ends it.
func StartWorker(netns, cgroup string) (*Worker, error) {
	cmd := exec.Command("/proc/self/exe", WorkerArgument)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start traffic worker: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start traffic worker: %w", err), stdin.Close())
	}
	// A new process has the namespace of the thread that starts it.
	err = host.InNetns(netns, func() error { return startIn(cmd, cgroup) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start traffic worker: %w", err), stdin.Close(), stdout.Close())
	}
	w := &Worker{cmd: cmd, stdin: stdin, answers: make(chan answer)}
	go w.listen(stdout)
	return w, nil
}

func startIn(cmd *exec.Cmd, cgroup string) error {
	// A process group of its own: Ctrl-C at the terminal is its parent's.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if cgroup == "" {
		return cmd.Start()
	}
	dir, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer dir.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	return cmd.Start()
}

// listen ends with the worker's standard output.
func (w *Worker) listen(stdout io.Reader) {
	defer close(w.answers)
	answers := json.NewDecoder(stdout) // which may be long: thousands of absences
	for {
		var a answer
		err := answers.Decode(&a)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			a.Error = fmt.Sprintf("read answer of traffic worker: %v", err)
		}
		w.answers <- a
		if err != nil {
			return
		}
	}
}

// PID is the worker's process id.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// Send makes the worker open n connections and send over them until Stop. The
// namespace of where is the worker's own.
func (w *Worker) Send(ctx context.Context, where Where, n int) error {
	_, err := w.ask(ctx, order{Verb: "send", To: where.To.String(), Senders: n, Congestion: where.Congestion, Pace: where.Pace})
	return err
}

// Flood makes the worker send datagrams of size bytes from n sockets until Stop, as
// StartFlood does.
func (w *Worker) Flood(ctx context.Context, where Where, n, size int) error {
	_, err := w.ask(ctx, order{Verb: "flood", To: where.To.String(), Senders: n, Size: size, Pace: where.Pace})
	return err
}

// Alternate makes the worker flood two ports by turns, for less than ten seconds together, as Alternate does.
// It takes no other orders until that is over.
func (w *Worker) Alternate(ctx context.Context, one, other Where, n, size int, turns Turns) error {
	_, err := w.ask(ctx, order{Verb: "alternate", To: one.To.String(), Other: other.To.String(), Senders: n, Size: size, Rounds: turns.Rounds, Every: turns.Slice})
	return err
}

// Stuff makes the worker open n connections and write so many bytes into each, as Stuff
// does. It does not wait for them.
func (w *Worker) Stuff(ctx context.Context, where Where, n, bytes int) error {
	_, err := w.ask(ctx, order{Verb: "stuff", To: where.To.String(), Senders: n, Size: bytes, Congestion: where.Congestion})
	return err
}

// Move makes the worker move into a cgroup (a v2 directory). The sockets that it has stay in
// those in which they were made.
func (w *Worker) Move(ctx context.Context, cgroup string) error {
	_, err := w.ask(ctx, order{Verb: "move", Cgroup: cgroup})
	return err
}

// Talk makes the worker open a Talk beside those that it has.
func (w *Worker) Talk(ctx context.Context) error {
	_, err := w.ask(ctx, order{Verb: "talk"})
	return err
}

// Speak lets all of the worker's talks take turns, for less than ten seconds together, and returns what
// each did.
func (w *Worker) Speak(ctx context.Context, turns Turns) ([]Spoken, error) {
	a, err := w.ask(ctx, order{Verb: "speak", Rounds: turns.Rounds, Every: turns.Slice, Ordinary: turns.Ordinary})
	return a.Spoken, err
}

// HangUp makes the worker close its talks.
func (w *Worker) HangUp(ctx context.Context) error {
	_, err := w.ask(ctx, order{Verb: "hang up"})
	return err
}

// Echo makes the worker answer at a port: datagrams as an Echo, and connections as a Server.
func (w *Worker) Echo(ctx context.Context, at netip.AddrPort) error {
	_, err := w.ask(ctx, order{Verb: "echo", To: at.String()})
	return err
}

// Receive makes the worker take what comes to a port, as a Receiver.
func (w *Worker) Receive(ctx context.Context, at netip.AddrPort) error {
	_, err := w.ask(ctx, order{Verb: "receive", To: at.String()})
	return err
}

// Received counts what has come to the worker's ports so far.
func (w *Worker) Received(ctx context.Context) (Received, error) {
	a, err := w.ask(ctx, order{Verb: "received"})
	return a.Received, err
}

// Pass makes the worker watch a Passage beside those that it watches. The namespace of where is
// the worker's own.
func (w *Worker) Pass(ctx context.Context, where Where, every time.Duration) error {
	_, err := w.ask(ctx, order{Verb: "pass", To: where.To.String(), Congestion: where.Congestion, Every: every})
	return err
}

// Passed ends all passages, and returns what was seen of each.
func (w *Worker) Passed(ctx context.Context) ([]Passed, error) {
	a, err := w.ask(ctx, order{Verb: "passed"})
	return a.Passed, err
}

// Watch makes the worker keep a Vigil, which begins anew where there is one.
func (w *Worker) Watch(ctx context.Context) error {
	_, err := w.ask(ctx, order{Verb: "watch"})
	return err
}

// Watched ends the vigil, and returns what it saw.
func (w *Worker) Watched(ctx context.Context) ([]Absence, error) {
	a, err := w.ask(ctx, order{Verb: "watched"})
	return a.Absences, err
}

// Stop ends what Send, Flood or Stuff began and returns how many bytes, or datagrams, the
// kernel took; of Stuff, how many connections there were.
func (w *Worker) Stop(ctx context.Context) (sent uint64, err error) {
	a, err := w.ask(ctx, order{Verb: "stop"})
	return a.Sent, err
}

// Resent is what was sent again so far of what Send began.
func (w *Worker) Resent(ctx context.Context) (Resent, error) {
	a, err := w.ask(ctx, order{Verb: "resent"})
	return a.Resent, err
}

// Connect makes the worker open a connection to ask over, in place of the one
// before. The namespace of where is the worker's own.
func (w *Worker) Connect(ctx context.Context, where Where) error {
	_, err := w.ask(ctx, order{Verb: "connect", To: where.To.String(), Congestion: where.Congestion, Pace: where.Pace})
	return err
}

// Ask makes the worker ask over its connection for as long as the requests say, at
// most ten seconds. It takes no other orders until all are answered.
func (w *Worker) Ask(ctx context.Context, r Requests) (Latency, error) {
	a, err := w.ask(ctx, order{Verb: "ask", Size: r.Size, Every: r.Every, For: min(r.For, patience)})
	return a.Latency, err
}

// patience is the longest time that a worker may ask: less than its orders have.
const patience = 10 * time.Second

func (w *Worker) ask(ctx context.Context, o order) (answer, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return answer{}, fmt.Errorf("order traffic worker to %s: %w", o.Verb, err)
	}
	if _, err := w.stdin.Write(append(text, '\n')); err != nil {
		return answer{}, fmt.Errorf("order traffic worker to %s: %w", o.Verb, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	select {
	case a, alive := <-w.answers:
		if !alive {
			return a, fmt.Errorf("order traffic worker to %s: it has ended", o.Verb)
		}
		if a.Error != "" {
			return a, fmt.Errorf("order traffic worker to %s: %s", o.Verb, a.Error)
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, fmt.Errorf("order traffic worker to %s: %w", o.Verb, context.Cause(ctx))
	}
}

// Close kills the worker and waits until it is gone. It may be called at any
// time, also when an order is unanswered.
func (w *Worker) Close() error {
	err := w.stdin.Close()
	if killed := w.cmd.Process.Kill(); !errors.Is(killed, os.ErrProcessDone) {
		err = errors.Join(err, killed)
	}
	for range w.answers { // until listen has ended: Wait closes the pipe
	}
	var exit *exec.ExitError
	if waited := w.cmd.Wait(); !errors.As(waited, &exit) {
		err = errors.Join(err, waited)
	}
	if err != nil {
		return fmt.Errorf("end traffic worker: %w", err)
	}
	return nil
}
