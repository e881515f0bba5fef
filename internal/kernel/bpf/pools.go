package bpf

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// A poolKey is how the kernel knows a pool: by its contract, and when it was made.
type poolKey struct {
	Contract uint32
	Made     uint32
}

// A pool is one that is there, and when it was made.
type pool struct {
	tcpMemoryPool
	made uint32
}

// pools returns the pools that are there, by their contracts.
func (g *Generation) pools() (map[plan.Contract]pool, error) {
	all, err := read[poolKey, tcpMemoryPool](g.memory.pools)
	if err != nil {
		return nil, err
	}
	pools := make(map[plan.Contract]pool, len(all))
	for key, p := range all {
		pools[plan.Contract{ID: plan.ContractID(key.Contract), Serial: uint16(p.Serial)}] = pool{p, key.Made}
	}
	return pools, nil
}

// makePool makes the pool of a contract that has none, and says when that was.
func (g *Generation) makePool(c plan.Contract) (made uint32, err error) {
	if made, err = now(); err != nil {
		return 0, err
	}
	return made, g.memory.pools.Put(poolKey{uint32(c.ID), made}, tcpMemoryPool{Serial: uint64(c.Serial)})
}

// now is the time in milliseconds since the boot, never 0. It tells a pool from one that
// the same contract had before: 32 bits of it are 50 days, so two of them would have to be made
// in the same millisecond of those, and a connection to know the first of them still.
func now() (uint32, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read clock: %w", err)
	}
	return max(uint32(t.Nano()/int64(time.Millisecond)), 1), nil
}

// Pools returns what the TCP sockets of the contracts with a bound hold.
func (g *Generation) Pools(contracts map[string]plan.Contract) (map[plan.ContractID]plan.Pool, error) {
	all, err := g.pools()
	if err != nil {
		return nil, err
	}
	pools := map[plan.ContractID]plan.Pool{}
	for _, c := range contracts {
		if p, known := all[c]; known {
			pools[c.ID] = plan.Pool{
				May: p.Watched + p.Whole, Most: p.Most, Sockets: p.Sockets + p.Wholes,
				Throttled: p.Throttled, Squeezed: p.Squeezed, Refused: p.Refused,
			}
		}
	}
	return pools, nil
}

// SettleMemory forgets the pools of contracts that are gone, or have no bound any more, when
// no older program counts in them. It reports whether there were any.
func (g *Generation) SettleMemory(rules plan.Rules, contracts map[string]plan.Contract) (gone bool, err error) {
	pools, err := g.pools()
	if err != nil {
		return false, err
	}
	for _, c := range contracts {
		if rules.Memory[c.ID].Max != 0 {
			delete(pools, c)
		}
	}
	for c, p := range pools {
		err = errors.Join(err, g.removePool(c, p))
	}
	return len(pools) > 0, err
}

// removePools removes the pools of a contract's number, whichever serial they are of.
func (g *Generation) removePools(id plan.ContractID) error {
	pools, err := g.pools()
	if err != nil {
		return err
	}
	for c, p := range pools {
		if c.ID == id {
			err = errors.Join(err, g.removePool(c, p))
		}
	}
	return err
}

func (g *Generation) removePool(c plan.Contract, p pool) error {
	return remove(g.memory.pools, map[poolKey]bool{{uint32(c.ID), p.made}: true}, nil)
}

// ForgetPools ends all bounds: nobody's buffers are made smaller from then on.
func (s *Sockets) ForgetPools() error {
	all, err := read[poolKey, tcpMemoryPool](s.memory.pools)
	if err != nil {
		return err
	}
	return remove(s.memory.pools, all, nil)
}
