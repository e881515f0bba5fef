package lab

import (
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
