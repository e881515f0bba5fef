package steer

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// What linux/ethtool.h says of flow rules, and no library that we use.
const (
	flowEther = 0x12 // ETHER_FLOW
	flowIPv4  = 0x0d // IPV4_USER_FLOW
	flowIPv6  = 0x0e // IPV6_USER_FLOW

	nextHeaderIPv4 = 1          // ETH_RX_NFC_IP4
	slotSpecial    = 0x80000000 // RX_CLS_LOC_SPECIAL: the driver chooses where a rule lies
	slotAny        = 0xffffffff // RX_CLS_LOC_ANY
)

// flowSpec is struct ethtool_rx_flow_spec: values and masks, the bits of a mask that are
// set being those that have to match.
type flowSpec struct {
	kind     uint32
	value    [52]byte // union ethtool_flow_union
	valueExt [20]byte // struct ethtool_flow_ext
	mask     [52]byte
	maskExt  [20]byte
	_        [4]byte
	queue    uint64
	slot     uint32
	_        [4]byte
}

// rxnfc is struct ethtool_rxnfc without the list of slots at its end.
type rxnfc struct {
	cmd   uint32
	kind  uint32
	data  uint64
	spec  flowSpec
	count uint32 // of rules; of a rule, its RSS context
	_     uint32 // where the list begins
}

// Where the unions have what a destination is: struct ethhdr, ethtool_usrip4_spec and
// ethtool_usrip6_spec.
const (
	destinationMAC = 0
	sizeofMAC      = 6
	destinationIP4 = 4
	versionIP4     = 13
	destinationIP6 = 16
)

// specOf is a rule as the kernel has it, without its slot.
func specOf(r plan.FlowRule) (s flowSpec) {
	s.queue = uint64(r.Queue)
	set := func(at int, address []byte) {
		copy(s.value[at:], address)
		for i := range address {
			s.mask[at+i] = 0xff
		}
	}
	switch {
	case !r.Addr.IsValid():
		s.kind = flowEther
		set(destinationMAC, r.MAC[:])
	case r.Addr.Is4():
		s.kind = flowIPv4
		s.value[versionIP4] = nextHeaderIPv4
		set(destinationIP4, r.Addr.AsSlice())
	default:
		s.kind = flowIPv6
		set(destinationIP6, r.Addr.AsSlice())
	}
	return s
}

// ruleOf is the reverse of specOf; not ok: the rule asks for other things as well.
func ruleOf(s flowSpec) (r plan.FlowRule, ok bool) {
	if s.queue >= 1<<32 { // of a virtual function, or to be dropped or waked up by
		return r, false
	}
	r.Queue = int(s.queue)
	switch s.kind {
	case flowEther:
		r.MAC = plan.MAC(s.value[destinationMAC : destinationMAC+sizeofMAC])
	case flowIPv4:
		r.Addr = netip.AddrFrom4([4]byte(s.value[destinationIP4 : destinationIP4+4]))
	case flowIPv6:
		r.Addr = netip.AddrFrom16([16]byte(s.value[destinationIP6 : destinationIP6+16]))
	}
	want := specOf(r)
	want.slot = s.slot
	// Drivers answer with what they hold: outside of the mask anything, or nothing.
	for i, bits := range s.mask {
		s.value[i] &= bits
		want.value[i] &= bits
	}
	s.valueExt, want.valueExt = [20]byte{}, [20]byte{}
	return r, s == want
}

// rules reads the device's flow rules, those of a form that is ours. takes says whether it has
// a table of them: drivers that have none, or have it turned off, say so by various errors.
func (d *Device) rules() (rules []plan.FlowRule, takes bool) {
	slots, _, err := d.slots()
	if err != nil {
		return nil, false
	}
	for _, slot := range slots {
		s, err := d.ruleAt(slot)
		if err != nil {
			continue // it went meanwhile
		}
		if r, ok := ruleOf(s); ok {
			rules = append(rules, r)
		}
	}
	return rules, true
}

// A store is what a driver says of its table of rules.
type store struct {
	size    uint32 // slots
	chooses bool   // it finds slots itself
}

// slots lists those that are taken.
func (d *Device) slots() ([]uint32, store, error) {
	count := rxnfc{cmd: unix.ETHTOOL_GRXCLSRLCNT}
	if err := d.ask(unsafe.Pointer(&count)); err != nil {
		return nil, store{}, err
	}
	request := make([]rxnfc, 1, 2+(int(count.count)+1)*4/int(unsafe.Sizeof(count)))
	request = request[:cap(request)] // the list of slots follows the struct
	request[0].cmd, request[0].count = unix.ETHTOOL_GRXCLSRLALL, count.count
	if err := d.ask(unsafe.Pointer(&request[0])); err != nil {
		return nil, store{}, err
	}
	list := unsafe.Add(unsafe.Pointer(&request[0]), unsafe.Offsetof(count.count)+unsafe.Sizeof(count.count))
	slots := unsafe.Slice((*uint32)(list), min(count.count, request[0].count))
	return append([]uint32(nil), slots...), store{uint32(request[0].data), count.data&slotSpecial != 0}, nil
}

func (d *Device) ruleAt(slot uint32) (flowSpec, error) {
	request := rxnfc{cmd: unix.ETHTOOL_GRXCLSRULE}
	request.spec.slot = slot
	err := d.ask(unsafe.Pointer(&request))
	return request.spec, err
}

// slotOf finds a rule; nil: the device has it not.
func (d *Device) slotOf(r plan.FlowRule) (*uint32, error) {
	slots, _, err := d.slots()
	if err != nil {
		return nil, err
	}
	for _, slot := range slots {
		s, err := d.ruleAt(slot)
		if got, ok := ruleOf(s); err == nil && ok && got == r { // else it is another, or went meanwhile
			return &slot, nil
		}
	}
	return nil, nil
}

// insertRule gives the rule a slot of its own: the driver's choice, or the last that is
// free, so that it comes after all others.
func (d *Device) insertRule(r plan.FlowRule) error {
	taken, table, err := d.slots()
	if err != nil {
		return err
	}
	request := rxnfc{cmd: unix.ETHTOOL_SRXCLSRLINS, spec: specOf(r)}
	if request.spec.slot = slotAny; !table.chooses {
		if request.spec.slot, err = lastFree(taken, table.size); err != nil {
			return err
		}
	}
	return d.ask(unsafe.Pointer(&request))
}

func lastFree(taken []uint32, size uint32) (uint32, error) {
	used := map[uint32]bool{}
	for _, slot := range taken {
		used[slot] = true
	}
	for slot := size; slot > 0; slot-- {
		if !used[slot-1] {
			return slot - 1, nil
		}
	}
	return 0, unix.ENOSPC
}

// deleteRule removes a rule; one that is not there is no error.
func (d *Device) deleteRule(r plan.FlowRule) error {
	slot, err := d.slotOf(r)
	if slot == nil || err != nil {
		return err
	}
	request := rxnfc{cmd: unix.ETHTOOL_SRXCLSRLDEL}
	request.spec.slot = *slot
	return d.ask(unsafe.Pointer(&request))
}
