package agent

import (
	"context"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/kernel/bpf"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// A socketTable is all TCP sockets, and who has them.
type socketTable struct {
	sockets   []tableSocket
	users     map[uint64]*socketUser   // by inode
	listeners map[listenPlace]listener // who accepts connections
}

// A tableSocket is a socket of one of the network namespaces.
type tableSocket struct {
	workload.TCPSocket
	bpf.Noted
	namespace int
}

// A socketUser is the processes that have a socket open, and what its maker is to rules.
type socketUser struct {
	processes []SocketProcess
	subject   plan.Subject
}

// A listenPlace is where connections come in; the address may be that of all.
type listenPlace struct {
	namespace int
	local     netip.AddrPort
}

// A listener is a socket that accepts them.
type listener struct {
	inode uint64
	uid   uint32
}

// readSocketTable looks at the sockets first, and then once at all processes, so that
// no more is kept of these than is asked for. An error that wraps fs.ErrPermission says
// which processes it could not look at; the table is good all the same.
func (s *scene) readSocketTable(ctx context.Context) (*socketTable, error) {
	t, err := s.listSockets(ctx)
	if err != nil {
		return nil, err
	}
	return t, s.findUsers(ctx, t)
}

// listSockets looks at the sockets alone.
func (s *scene) listSockets(ctx context.Context) (*socketTable, error) {
	t := &socketTable{users: map[uint64]*socketUser{}, listeners: map[listenPlace]listener{}}
	tables, err := s.notes()
	if err != nil {
		return nil, err
	}
	var storages []int
	for _, table := range tables {
		storages = append(storages, table.FD)
	}
	namespace := 0
	err = inEachNamespace(func() error {
		sockets, err := workload.TCPSockets(ctx, storages...)
		if err != nil {
			return err
		}
		for _, socket := range sockets {
			found := tableSocket{TCPSocket: socket, namespace: namespace}
			if len(socket.Stored) > 0 {
				if found.Noted, err = s.sockets.Noted(tables, socket.Stored); err != nil {
					return err
				}
			}
			t.add(found)
		}
		namespace++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// notes are the tables that tell more of sockets; none where nothing is applied.
func (s *scene) notes() ([]bpf.Table, error) {
	if s.sockets == nil {
		return nil, nil
	}
	return s.sockets.Tables()
}

func (t *socketTable) add(s tableSocket) {
	t.sockets = append(t.sockets, s)
	if s.Inode != 0 {
		t.users[s.Inode] = &socketUser{}
	}
	at := listenPlace{s.namespace, s.Local}
	if _, known := t.listeners[at]; s.Listens() && !known {
		t.listeners[at] = listener{s.Inode, s.UID}
	}
}

// findUsers looks for the processes that have the sockets open.
func (s *scene) findUsers(ctx context.Context, t *socketTable) error {
	var last workload.Process // processes come one after the other
	var subject plan.Subject
	return workload.EachSocket(ctx, nil, func(p workload.Process, socket workload.Socket) error {
		u := t.users[socket.Inode]
		if u == nil || socket.Protocol != unix.IPPROTO_TCP && socket.Protocol != unix.IPPROTO_MPTCP {
			return nil
		}
		if last.PID != p.PID || last.Start != p.Start {
			last, subject = p, s.subject(p)
		}
		if len(u.processes) == 0 {
			u.subject = s.remembered(subject, socket)
		}
		u.processes = append(u.processes, SocketProcess{p.PID, p.Name})
		return nil
	})
}

// acceptor finds the listener in whose queue a connection waits. Of several that share the
// port it is one.
func (t *socketTable) acceptor(s tableSocket) (listener, bool) {
	port := s.Local.Port()
	for _, local := range []netip.AddrPort{
		s.Local, netip.AddrPortFrom(netip.IPv4Unspecified(), port), netip.AddrPortFrom(netip.IPv6Unspecified(), port),
	} {
		if l, ok := t.listeners[listenPlace{s.namespace, local}]; ok {
			return l, true
		}
	}
	return listener{}, false
}
