package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/weir-net/weir/internal/plan"
)

// A Table is one in which sockets have values, as the kernel's socket tables (sock_diag)
// know it.
type Table struct {
	FD int
	ID uint32 // what the values come with
}

// Tables returns those that [Sockets.Noted] reads, as long as the memory is open.
func (s *Sockets) Tables() ([]Table, error) {
	var all []Table
	for _, m := range s.noted() {
		info, err := m.Info()
		if err != nil {
			return nil, fmt.Errorf("read what sockets are noted in: %w", err)
		}
		id, known := info.ID()
		if !known {
			return nil, fmt.Errorf("read what sockets are noted in: %w", errors.ErrUnsupported)
		}
		all = append(all, Table{m.FD(), uint32(id)})
	}
	return all, nil
}

func (s *Sockets) noted() []*ebpf.Map {
	return []*ebpf.Map{s.identities, s.verdicts, s.memory.holdings}
}

// Noted is what the kernel side has noted of a socket.
type Noted struct {
	Identity   Identity        // the zero Identity is nothing
	Contract   plan.ContractID // under which its last packet went
	Generation uint32          // of the programs that found that; 0: nobody has
	Holding    *plan.Holding   // nil: it is below no bound of memory
}

// Noted reads what the tables have of a socket, by their ids.
func (s *Sockets) Noted(tables []Table, values map[uint32][]byte) (n Noted, err error) {
	for i, t := range tables {
		b, known := values[t.ID]
		if !known {
			continue
		}
		switch s.noted()[i] {
		case s.identities:
			var v linkEgressIdentity
			err = errors.Join(err, decode(b, &v))
			n.Identity = identityOf(v)
		case s.verdicts:
			var k linkEgressKnown
			err = errors.Join(err, decode(b, &k))
			if k.ofAll() {
				n.Contract, n.Generation = plan.ContractID(k.Verdict.Contract), k.Verdict.Generation
			}
		case s.memory.holdings:
			var v tcpMemoryHolding
			err = errors.Join(err, decode(b, &v))
			n.Holding = holdingOf(v)
		}
	}
	return n, err
}

func decode(b []byte, v any) error {
	if _, err := binary.Decode(b, binary.NativeEndian, v); err != nil {
		return fmt.Errorf("read what is noted of a socket: %w", err)
	}
	return nil
}

// The smallest buffers that bpf/buffers.h asks for.
const (
	leastSend    = 8 << 10
	leastReceive = 4 << 10
)

// holdingOf is what a connection has of its pools, nil if it is in none any more.
func holdingOf(v tcpMemoryHolding) *plan.Holding {
	if v.Counts == 0 {
		return nil
	}
	return &plan.Holding{
		Counts: uint64(v.Counts), Capped: v.Sndbuf != 0 || v.Rcvbuf != 0,
		Squeezed: v.Sndbuf != 0 && v.Sndbuf <= leastSend && v.Rcvbuf != 0 && v.Rcvbuf <= leastReceive,
	}
}
