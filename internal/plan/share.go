package plan

import (
	"fmt"
	"slices"

	"github.com/weir-net/weir/internal/policy"
)

// A Share is a part of the line that one workload has whenever it wants it. HTB
// serves what is within its own rate before anything that borrows; what a share
// leaves idle, all borrow in order of their priorities, and so does its workload
// beyond its share, up to its limit if it has one here. The zero Share is nobody's.
type Share struct {
	Min   policy.Rate // in bits on the wire, the Ethernet header included; 0: a limit alone
	Class uint8       // as whose packets its own borrow
	Max   policy.Rate `json:",omitempty"` // likewise; 0: whatever the line has
}

// MaxShares is the most workloads that can have a share of one link, or a limit that
// its htb holds.
const MaxShares = 256

// Handles of what a share is made of: an inner class, which has the share, and below
// it as many leaves as any class of the queue has, which share it evenly.
const (
	firstShareLeaf  = 0x2000 // minor number of the first share's first leaf
	shareShift      = 4      // leaves of one share are numbered in the lower bits
	firstShareInner = 0x3000 // minor number of the first share's inner class
	// ShareHandle + MaxBuckets*n + b is the qdisc in leaf b of share n.
	ShareHandle = 0x5000
)

// ShareMinor is the minor number of the HTB class that is one leaf of a share.
func ShareMinor(n, bucket int) uint32 {
	return firstShareLeaf + uint32(n)<<shareShift + uint32(bucket)
}

// ShareInner is the minor number of the HTB class that has the share.
func ShareInner(n int) uint32 { return firstShareInner + uint32(n) }

// ShareOfInner is the inverse of ShareInner.
func ShareOfInner(minor uint32) (n int, ok bool) {
	n = int(minor) - firstShareInner
	return n, n >= 0 && n < MaxShares
}

// ShareOfMinor is the inverse of ShareMinor; ok is false for any other minor number.
func ShareOfMinor(minor uint32) (n, bucket int, ok bool) {
	if minor < firstShareLeaf {
		return 0, 0, false
	}
	n, bucket = int(minor-firstShareLeaf)>>shareShift, int(minor&(1<<shareShift-1))
	return n, bucket, n < MaxShares && bucket < MaxBuckets
}

// WrittenShare is the skb->priority that puts a packet into a share's first leaf;
// link_egress adds the flow's.
func (q Queue) WrittenShare(n int) uint32 { return RootHandle<<16 | ShareMinor(n, 0) }

// ShareOf is the number of the share that a written priority stands for; ok is false
// where it stands for a class.
func (q Queue) ShareOf(written uint32) (n int, ok bool) {
	if written>>16 != RootHandle {
		return 0, false
	}
	n, _, ok = ShareOfMinor(written & 0xffff)
	return n, ok && n < len(q.Shares) && q.Shares[n] != (Share{})
}

// Undivided is the queue without its shares.
func (q Queue) Undivided() Queue {
	q.Shares = nil
	return q
}

// sum is what shares come to.
func sum(shares []Share) (all policy.Rate) {
	for _, s := range shares {
		all += s.Min
	}
	return all
}

// shareOf is the number of the share that a contract has of a link; ok is false where
// it has none.
func (l LinkState) shareOf(id ContractID) (n int, ok bool) {
	p, ok := l.Rules.Contracts[id]
	if !ok {
		return 0, false
	}
	return l.Queue.ShareOf(p.Priority)
}

// Entitled are the contracts that have the link's shares, in their order; Unclaimed
// where nobody has one.
func (l LinkState) Entitled() []ContractID {
	all := make([]ContractID, len(l.Queue.Shares))
	for id, p := range l.Rules.Contracts {
		if n, ok := l.Queue.ShareOf(p.Priority); ok {
			all[n] = id
		}
	}
	return all
}

// atLeast puts a share into words.
func atLeast(min policy.Rate) string { return "at least " + min.String() }

// String puts a share and its limit into words: "at least 30Mbit, beyond that class 4",
// "at most 10Mbit by htb, as class 0".
func (s Share) String() string {
	limit := Limit{Max: s.Max}.String() + " by " + string(policy.MethodHTB)
	switch {
	case s.Min == 0:
		return fmt.Sprintf("%s, as class %d", limit, s.Class)
	case s.Max == 0:
		return fmt.Sprintf("%s, beyond that class %d", atLeast(s.Min), s.Class)
	}
	return fmt.Sprintf("%s, beyond that class %d, %s", atLeast(s.Min), s.Class, limit)
}

// shareIn is what a workload has of a link in a class of its own; ok is false where it
// has none.
func (r LimitRungs) shareIn(p *policy.Policy, w policy.Workload, link string) (s Share, ok bool) {
	min, most := w.Contract.Egress.Min[link], r.classMax(p, w, link)
	if min == 0 && most == 0 || w.Via != policy.ViaBPF {
		return Share{}, false
	}
	class := SpreadOver(HTBClasses)[max(w.Contract.Priority.On(link), 0)]
	return Share{Min: min - min%8, Class: class, Max: most - most%8}, true
}

// shareNumbers are the numbers of the shares that a policy promises of a link, by
// workload: those of the last apply stay, so that nobody's packets change their class
// when others come and go.
func (ids IDs) shareNumbers(p *policy.Policy, link string, limits LimitRungs) map[string]int {
	var names []string
	for _, w := range p.Workloads {
		if _, has := limits.shareIn(p, w, link); has {
			names = append(names, w.Name)
		}
	}
	return number(names, ids.Shares[link])
}

// number gives workloads the numbers that they had before, and others to those that had none.
func number(names []string, before map[string]int) map[string]int {
	numbers := map[string]int{}
	var taken, known [MaxShares]bool
	var fresh []string
	for _, n := range before {
		if n < MaxShares {
			known[n] = true
		}
	}
	for _, name := range names {
		if n, ok := before[name]; ok && n < MaxShares {
			numbers[name], taken[n] = n, true
		} else {
			fresh = append(fresh, name)
		}
	}
	// What leaves has its number until the programs have changed over.
	for _, avoid := range [][MaxShares]bool{known, taken} {
		for n := range MaxShares {
			if len(fresh) > 0 && !taken[n] && !avoid[n] {
				numbers[fresh[0]], taken[n], fresh = n, true, fresh[1:]
			}
		}
	}
	for i, name := range fresh {
		numbers[name] = MaxShares + i // more than there can be: Choose refuses them
	}
	return numbers
}

// sharesOf are the shares of a link by their numbers. One that nobody has is zero.
func sharesOf(p *policy.Policy, link string, limits LimitRungs, numbers map[string]int) (shares []Share) {
	for _, w := range p.Workloads {
		n, ok := numbers[w.Name]
		if !ok {
			continue
		}
		for len(shares) <= n {
			shares = append(shares, Share{})
		}
		shares[n], _ = limits.shareIn(p, w, link)
	}
	return shares
}

// countShares is how many of them somebody has.
func countShares(shares []Share) (n int) {
	for _, s := range shares {
		if s != (Share{}) {
			n++
		}
	}
	return n
}

// Widened is the queue with what is about to go from it. Shares are at next to nothing:
// whose packets still go there loses no more than what was promised, and is held
// to what it was. Times of departure are kept.
func (q Queue) Widened(before Queue) Queue {
	if before.Leaf == LeafFQ && q.Scheduler == before.Scheduler && q.Rate == 0 {
		q.Leaf = LeafFQ
		return q
	}
	if q.Scheduler != policy.HTB || before.Scheduler != policy.HTB || q.Leaves() != before.Leaves() {
		return q // it is built anew
	}
	all := slices.Clone(q.Shares)
	for n, s := range before.Shares {
		if n >= len(all) {
			all = append(all, Share{})
		}
		if all[n] == (Share{}) && s != (Share{}) {
			all[n] = Share{Min: min(s.Min, MinRate), Class: s.Class, Max: min(s.Max, q.Rate)}
		}
	}
	q.Shares = all
	return q
}
