package tc

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// A Police is a filter of ours that drops what is above a limit, and what it has done
// since it was made.
type Police struct {
	Limit   plan.Limit   // one that is not Weir's in every part is no limit
	Passed  plan.Traffic // as the hook sees it: on arrival without the header of the link layer, and what a device put together once
	Dropped uint64       // packets
}

// What a filter's two actions are, in order: the second counts what the first lets by.
const (
	policeKind = "police"
	passKind   = "gact"
)

// What the library does not know, or takes for larger than it is.
const (
	policeRate64 = 8          // TCA_POLICE_RATE64
	rateTable    = 1024       // TC_RTAB_SIZE
	skipHardware = 1          // TCA_CLS_FLAGS_SKIP_HW
	gactSize     = 20         // sizeof(struct tc_gact)
	gactAction   = 8          // offsetof(struct tc_gact, action)
	goOn         = 0xffffffff // TC_ACT_UNSPEC
)

// SetPolice holds what passes the hook to a limit, by one filter behind those that
// Weir has there; a limit without a rate takes it away. header is how many bytes a packet
// lacks at the hook of those that it has on the wire. The kernel can not change such
// a filter: where a limit changes, both hold for a moment. clsact is made if absent, as
// [Attach] does.
func SetPolice(link int, hook Hook, l plan.Limit, header int) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	var have []policing
	q, err := c.besideRoot(link)
	if err == nil && q.kind == clsactKind {
		have, err = c.polices(link, hook)
	}
	if err != nil {
		return err
	}
	if l.Max != 0 {
		if i := slices.IndexFunc(have, func(f policing) bool { return f.Limit == l }); i >= 0 {
			have = slices.Delete(have, i, i+1)
		} else if err := c.addPolice(link, hook, l, header); err != nil {
			return err
		}
	}
	for _, f := range have {
		if err := c.deleteFilter(link, f.entry); err != nil {
			return kernelError(link, fmt.Sprintf("delete %s police", hook), "", err)
		}
	}
	return nil
}

// ClearPolice ends what [SetPolice] began, and takes clsact away unless keepClsact is set
// or anything is still attached, at either hook.
func ClearPolice(link int, hook Hook, keepClsact bool) error {
	if err := SetPolice(link, hook, plan.Limit{}, 0); err != nil || keepClsact {
		return err
	}
	return clearClsact(link)
}

// Polices reads our filters at the hooks of a link: at each one, none, or two where a
// change was broken off.
func Polices(link int) (map[Hook][]Police, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	if q, err := c.besideRoot(link); err != nil || q.kind != clsactKind {
		return nil, err
	}
	all := map[Hook][]Police{}
	for _, hook := range []Hook{Egress, Ingress} {
		found, err := c.polices(link, hook)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			all[hook] = append(all[hook], f.Police)
		}
	}
	return all, nil
}

// A policing is a Police as the kernel has it.
type policing struct {
	Police
	entry entry
}

func (c *conn) polices(link int, hook Hook) ([]policing, error) {
	filters, err := c.filters(link, uint32(hook))
	if err != nil {
		return nil, err
	}
	var found []policing
	for _, f := range filters {
		if f.kind != "matchall" || f.handle != ourFilter {
			continue
		}
		p, err := decodePolice(f.options)
		if err != nil {
			return nil, refuse(link, ErrDrift, "read %s police: %v", hook, err)
		}
		found = append(found, policing{p, f})
	}
	return found, nil
}

func (c *conn) addPolice(link int, hook Hook, l plan.Limit, header int) error {
	if err := c.ensureClsact(link, hook); err != nil {
		return err
	}
	filters, err := c.filters(link, uint32(hook))
	if err != nil {
		return err
	}
	m := message{typ: unix.RTM_NEWTFILTER, flags: unix.NLM_F_CREATE | unix.NLM_F_EXCL, kind: "matchall", options: encodePolice(l, header),
		tcm: nl.TcMsg{Ifindex: int32(link), Handle: ourFilter, Parent: uint32(hook), Info: filters.behind()}}
	if err := c.send(m); err != nil {
		return kernelError(link, fmt.Sprintf("add %s police", hook), "matchall classifier, police action or gact action", err)
	}
	return nil
}

// behind is priority and protocol of a new filter: the first priority behind our
// program, or the place that this will have, that no filter holds.
func (filters entries) behind() uint32 {
	first := uint32(2)
	if f, ok := filters.ours(); ok {
		first = f.info>>16 + 1
	}
	for slices.ContainsFunc(filters, func(f entry) bool { return f.info>>16 == first }) {
		first++
	}
	return first<<16 | ethPAll
}

// encodePolice is the options of a filter that drops what is above the limit, counts what
// is not, and leaves it to the filters behind.
func encodePolice(l plan.Limit, header int) *nl.RtAttr {
	rate := uint64(l.Max) / 8
	p := nl.TcPolice{Action: int32(netlink.TC_ACT_SHOT), Burst: ticks(uint64(l.Burst), rate), Mtu: math.MaxInt32}
	// The kernel asks for a table of times that it has not used since 3.8.
	p.Rate = nl.TcRateSpec{CellLog: 3, Linklayer: linklayerEther, Overhead: uint16(header), Rate: rate32(rate)}
	o := container(0)
	actions := o.AddRtAttr(nl.TCA_MATCHALL_ACT, nil)
	options := addAction(actions, 1, policeKind)
	options.AddRtAttr(nl.TCA_POLICE_TBF, p.Serialize())
	options.AddRtAttr(nl.TCA_POLICE_RATE, make([]byte, rateTable))
	if rate > math.MaxUint32 {
		options.AddRtAttr(policeRate64, nl.Uint64Attr(rate))
	}
	options.AddRtAttr(nl.TCA_POLICE_RESULT, nl.Uint32Attr(uint32(netlink.TC_ACT_PIPE)))
	pass := make([]byte, gactSize)
	native.PutUint32(pass[gactAction:], goOn)
	addAction(actions, 2, passKind).AddRtAttr(nl.TCA_GACT_PARMS, pass)
	o.AddRtAttr(nl.TCA_MATCHALL_FLAGS, nl.Uint32Attr(skipHardware))
	return o
}

// addAction adds an action to a list and returns its options.
func addAction(list *nl.RtAttr, place int, kind string) *nl.RtAttr {
	a := list.AddRtAttr(place, nil)
	a.AddRtAttr(nl.TCA_ACT_KIND, nl.ZeroTerminated(kind))
	return a.AddRtAttr(nl.TCA_ACT_OPTIONS, nil)
}

// decodePolice reads a filter. One whose actions others changed has no limit.
func decodePolice(options []byte) (p Police, err error) {
	var kinds []string
	drops, passes := false, false
	broken := eachAttr(options, func(typ uint16, list []byte) {
		if typ != nl.TCA_MATCHALL_ACT {
			return
		}
		err = eachAttr(list, func(_ uint16, v []byte) {
			a, e := decodeAction(v)
			err = errors.Join(err, e)
			switch kinds = append(kinds, a.kind); a.kind {
			case policeKind:
				p.Limit, drops, e = decodeTBF(a.options)
				p.Dropped = uint64(a.stats.drops)
			case passKind:
				passes, e = decodePass(a.options)
				p.Passed = plan.Traffic{Packets: a.stats.packets, Bytes: a.stats.bytes}
			}
			err = errors.Join(err, e)
		})
	})
	if !slices.Equal(kinds, []string{policeKind, passKind}) || !drops || !passes {
		p.Limit = plan.Limit{}
	}
	return p, errors.Join(broken, err)
}

// An action of a filter, as the kernel dumps it.
type action struct {
	kind    string
	options []byte
	stats   stats
}

func decodeAction(b []byte) (a action, err error) {
	err = eachAttr(b, func(typ uint16, v []byte) {
		switch typ {
		case nl.TCA_ACT_KIND:
			a.kind = strings.TrimRight(string(v), "\x00")
		case nl.TCA_ACT_OPTIONS:
			a.options = v
		case nl.TCA_ACT_STATS:
			a.stats, _ = parseStats(v)
		}
	})
	return a, err
}

// decodeTBF reads the limit of a police action, and whether it drops what is above and
// passes on what is not.
func decodeTBF(b []byte) (l plan.Limit, drops bool, err error) {
	var rate uint64
	var burst, result uint32
	err = eachAttr(b, func(typ uint16, v []byte) {
		switch {
		case typ == nl.TCA_POLICE_TBF && len(v) >= nl.SizeofTcPolice:
			p := nl.DeserializeTcPolice(v)
			rate, burst = max(rate, uint64(p.Rate.Rate)), p.Burst
			drops = p.Action == int32(netlink.TC_ACT_SHOT)
		case typ == policeRate64 && len(v) >= 8:
			rate = native.Uint64(v)
		case typ == nl.TCA_POLICE_RESULT && len(v) >= 4:
			result = native.Uint32(v)
		}
	})
	bytes := float64(burst) * tick * float64(rate) / 1e9
	l = plan.Limit{Max: policy.Rate(rate * 8), Burst: policy.Size(math.Round(bytes/float64(plan.PoliceUnit))) * plan.PoliceUnit}
	return l, drops && result == uint32(netlink.TC_ACT_PIPE), err
}

// decodePass reports whether an action leaves a packet to the filters behind.
func decodePass(b []byte) (passes bool, err error) {
	err = eachAttr(b, func(typ uint16, v []byte) {
		if typ == nl.TCA_GACT_PARMS && len(v) >= gactSize {
			passes = native.Uint32(v[gactAction:]) == goOn
		}
	})
	return passes, err
}

// tryPolice adds a filter that polices; ENOENT says that the kernel can not.
func (c *conn) tryPolice(link int) error {
	err := c.addPolice(link, Ingress, plan.Limit{Max: policy.MinEgress, Burst: policy.MinPoliceBurst}, 0)
	if errors.Is(err, ErrUnsupported) {
		return unix.ENOENT
	}
	return err
}
