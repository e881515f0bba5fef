package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// An Explanation says which rule a process, a socket or a packet hits, and why.
type Explanation struct {
	SchemaVersion string        `json:"schema_version"`
	Subject       string        `json:"subject"`
	Workload      string        `json:"workload"`         // "" if no workload claims it
	Reasons       []plan.Reason `json:"reasons"`          // all rules that fit, the winner first
	Promises      []string      `json:"promises"`         // what that means, a link each
	Limits        []string      `json:"limits,omitempty"` // how what it sends is held, and why so: "eth0 by htb: …"
	Kernel        string        `json:"kernel"`           // what the kernel itself says of it
	Agrees        *bool         `json:"agrees"`           // whether that is what the rules say; null if it says nothing
	Sockets       []Explanation `json:"sockets,omitempty"`
}

// ExplainPID explains what a process' next socket gets, and each of its open
// sockets.
func (a *Agent) ExplainPID(ctx context.Context, pid uint32) (*Explanation, error) {
	var x *Explanation
	err := a.explain(ctx, func(s *scene) error {
		p, err := workload.ReadProcess(pid)
		if err != nil {
			return err
		}
		x = s.draw(fmt.Sprintf("process %d (%s)", pid, p.Name), s.subject(p))
		x.Kernel = "no tag of its own"
		if tag := s.tasks[pid]; tag != 0 {
			x.Kernel = "tagged for " + s.nameOfTag(tag)
		}
		for socket, err := range workload.Sockets(p) {
			if err != nil {
				return err
			}
			x.Sockets = append(x.Sockets, *s.socket(p, socket, 0))
			socket.Close()
		}
		return nil
	})
	return x, err
}

// ExplainSocket explains one socket of the scope's network namespace.
func (a *Agent) ExplainSocket(ctx context.Context, spec workload.SocketSpec) (*Explanation, error) {
	var x *Explanation
	err := a.explain(ctx, func(s *scene) error {
		var found []workload.SocketEntry
		err := a.inScope(func() (err error) {
			found, err = workload.FindSockets(ctx, spec)
			return err
		})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("explain %s: no such socket here", spec)
		}
		owners, err := workload.Owners(ctx, found[0].Inode)
		if err != nil {
			return err
		}
		for _, p := range owners {
			if x, err = s.owned(p, found[0]); x != nil || err != nil && !errors.Is(err, workload.ErrGone) {
				return err
			}
		}
		return fmt.Errorf("explain %s: no process has it open any more", spec)
	})
	return x, err
}

// ExplainFlow explains a packet that has no socket here, and has the kernel
// classify it by the tables that are in force.
func (a *Agent) ExplainFlow(ctx context.Context, p plan.Packet, text string) (*Explanation, error) {
	var x *Explanation
	err := a.explain(ctx, func(s *scene) error {
		x = s.draw("flow "+text, plan.Subject{Packet: &p})
		id, err := s.g.Classify(p.Frame())
		if err != nil {
			return err
		}
		x.kernelSays(s.nameOf(id))
		return nil
	})
	return x, err
}

// kernelSays notes the kernel's own answer and whether it is the same.
func (x *Explanation) kernelSays(workload string) {
	agrees := workload == x.Workload
	x.Agrees = &agrees
	x.Kernel = "says the same"
	if !agrees {
		x.Kernel = fmt.Sprintf("says %q", orNobody(workload))
	}
}

func orNobody(workload string) string {
	if workload == "" {
		return "nobody's"
	}
	return workload
}
