package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/weir-net/weir/internal/lab/names"
)

// lookupPatience is how long a program may take to look a name up: the C library gives up
// after ten seconds.
const lookupPatience = 20 * time.Second

// look measures an arm: what programs in a VRF find, or with "" outside of any, and what those
// outside find meanwhile.
func (l *vrfLab) look(ctx context.Context, arm, vrf string) error {
	wanted := &l.data // without a VRF the first of two routes alike is the only one
	if vrf != "" {
		wanted = &l.mgmt
	}
	asked := map[*network]uint64{&l.data: l.data.servers.Questions(), &l.mgmt: l.mgmt.servers.Questions()}
	found, err := l.lookUp(ctx, vrf)
	if err != nil {
		return err
	}
	for n, before := range asked {
		l.measured(arm, "questions_"+n.name, "", float64(n.servers.Questions()-before))
		l.measured(arm, "answered_by_"+n.name, "%", l.part(found, n.answer))
	}
	l.measured(arm, "lookup_ok", "%", l.part(found, wanted.answer))
	reached := 0
	for _, address := range found {
		ok, err := l.reaches(ctx, vrf, address, wanted)
		if err != nil {
			return err
		}
		if ok {
			reached++
		}
	}
	l.measured(arm, "connect_ok", "%", l.percent(reached))
	l.measured(arm, "session_survived", "%", l.alive(ctx))
	if vrf == "" {
		return nil
	}
	reached = 0
	for range l.tries {
		ok, err := l.reaches(ctx, vrf, wanted.answer, wanted)
		if err != nil {
			return err
		}
		if ok {
			reached++
		}
	}
	l.measured(arm, "connect_by_address_ok", "%", l.percent(reached))
	outside, err := l.lookUp(ctx, "")
	if err != nil {
		return err
	}
	l.measured(arm, "lookup_outside_ok", "%", l.part(outside, l.data.answer))
	return nil
}

// lookUp looks names up as programs do, by getent and the C library: every other one has an
// answer that needs a connection. What is not found is no address.
func (l *vrfLab) lookUp(ctx context.Context, vrf string) (found []netip.Addr, err error) {
	for i := range l.tries {
		name := "www.weir.test"
		if i%2 == 1 {
			name = names.Long + "weir.test"
		}
		limited, cancel := context.WithTimeout(ctx, lookupPatience)
		out, code, err := l.place.Run(limited, vrf, l.getent, "ahosts", name)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case limited.Err() == nil && err != nil:
			return nil, fmt.Errorf("look %s up: %w", name, err)
		case err != nil || code == notFound:
			found = append(found, netip.Addr{})
			continue
		case code != 0:
			return nil, fmt.Errorf("look %s up: getent ends with %d", name, code)
		}
		word, _, _ := strings.Cut(out, " ")
		address, err := netip.ParseAddr(word)
		if err != nil {
			return nil, fmt.Errorf("look %s up: getent says %q", name, out)
		}
		found = append(found, address)
	}
	return found, nil
}

// notFound is getent's exit code for a name without an address.
const notFound = 2

// reaches reports whether a connection to an address reaches a network, from inside of a VRF.
func (l *vrfLab) reaches(ctx context.Context, vrf string, to netip.Addr, wanted *network) (bool, error) {
	if !to.IsValid() {
		return false, nil // the name has no address
	}
	said, ok, err := l.place.Hear(ctx, vrf, netip.AddrPortFrom(to, servicePort).String())
	return ok && said == wanted.name, err
}

// part is how many of the lookups found an address, in per cent.
func (l *vrfLab) part(found []netip.Addr, address netip.Addr) float64 {
	n := 0
	for _, a := range found {
		if a == address {
			n++
		}
	}
	return l.percent(n)
}

func (l *vrfLab) percent(n int) float64 { return 100 * float64(n) / float64(l.tries) }
