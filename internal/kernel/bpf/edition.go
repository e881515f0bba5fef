package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// editionTable is the variable of link_egress by which sockets know whether what they keep of a contract holds
// (bpf/shortcut.h), as a table of one entry.
func editionTable(maps map[string]*ebpf.MapSpec) *ebpf.MapSpec {
	spec := maps[".data.edition"].Copy()
	spec.Flags |= unix.BPF_F_MMAPABLE // as the loader has it
	return spec
}

// keepsShortcuts says whether all that most packets of a socket need may be kept there, on a link whose own limits have such budgets:
// where it has one, or a queue of ours, more has to be known of each packet.
func keepsShortcuts(l plan.LinkRules, own uint32) bool { return l.NoQueue && own == 0 }

// edit changes what contracts mean on a link. Sockets keep of that what they need, by the link's edition:
// meanwhile, and if it is killed in between, that does not count.
func (g *Generation) edit(t linkTables, change func() error) error {
	var now linkEgressEdition
	if err := t.edition.Lookup(uint32(0), &now); err != nil {
		return fmt.Errorf("read the edition of a link: %w", err)
	}
	if now == linkEgressEditionNO_EDITION {
		return change()
	}
	if err := t.edition.Put(uint32(0), linkEgressEditionNO_EDITION); err != nil {
		return fmt.Errorf("take back the edition of a link: %w", err)
	}
	return errors.Join(change(), g.publishEdition(t.edition))
}

// publishEdition gives a link an edition that no link has had.
func (g *Generation) publishEdition(m *ebpf.Map) error {
	var latest linkEgressEdition
	if err := g.memory.editions.Lookup(uint32(0), &latest); err != nil {
		return fmt.Errorf("read the latest edition: %w", err)
	}
	latest = max(latest+1<<linkEgressEditionEDITION_SHIFT, linkEgressEditionFIRST_EDITION) // the first one, and after the last
	for _, m := range []*ebpf.Map{g.memory.editions, m} {
		if err := m.Put(uint32(0), latest); err != nil {
			return fmt.Errorf("publish an edition: %w", err)
		}
	}
	return nil
}
