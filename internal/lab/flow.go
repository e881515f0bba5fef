package lab

import (
	"fmt"

	"github.com/weir-net/weir/internal/lab/hosts"
	"github.com/weir-net/weir/internal/lab/traffic"
)

// A flow is one workload, a process in a cgroup of its own, and the server that it
// sends to.
type flow struct {
	name   string
	to     traffic.Where
	server *traffic.Server
	worker *traffic.Worker
	cgroup string // as /proc/PID/cgroup names it
}

// flow makes a workload on one host and its server on another.
func (s *session) flow(sender, receiver *hosts.Host, name string, to traffic.Where) (f *flow, err error) {
	f = &flow{name: name, to: to}
	f.server, err = traffic.Serve(receiver.Netns(), to.To)
	if f.server, err = closing(s, f.server, err); err != nil {
		return nil, err
	}
	dir, err := makeCgroup(s.Controller.Cgroup(), name)
	if err != nil {
		return nil, err
	}
	s.onClose(func() error { return removeCgroup(dir) })
	f.worker, err = traffic.StartWorker(sender.Netns(), dir)
	if f.worker, err = closing(s, f.worker, err); err != nil {
		return nil, err
	}
	f.cgroup, err = cgroupOf(f.worker.PID())
	return f, err
}

// employ makes a cgroup of one workload and its processes on a host, and returns the selector of it.
func (s *session) employ(on *hosts.Host, name string, workers ...**traffic.Worker) (match string, err error) {
	dir, err := makeCgroup(s.Controller.Cgroup(), name)
	if err != nil {
		return "", err
	}
	s.onClose(func() error { return removeCgroup(dir) })
	for _, w := range workers {
		*w, err = traffic.StartWorker(on.Netns(), dir)
		if *w, err = closing(s, *w, err); err != nil {
			return "", err
		}
	}
	cgroup, err := cgroupOf((*workers[0]).PID())
	return fmt.Sprintf("cgroup: %q", cgroup), err
}
