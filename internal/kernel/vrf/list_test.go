package vrf

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestUndisturbed(t *testing.T) {
	denied := errors.New("denied")
	for _, c := range []struct {
		disturbed int // so often
		then      error
		want      error
	}{{0, nil, nil}, {9, nil, nil}, {99, nil, netlink.ErrDumpInterrupted}, {1, denied, denied}} {
		asked := 0
		got, err := undisturbed(func() ([]int, error) {
			if asked++; asked <= c.disturbed {
				return []int{1}, netlink.ErrDumpInterrupted
			}
			return []int{1, 2}, c.then
		})
		if !errors.Is(err, c.want) || err == nil && len(got) != 2 {
			t.Errorf("disturbed %d times: %v, %v", c.disturbed, got, err)
		}
	}
}
