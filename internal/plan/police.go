package plan

import (
	"fmt"
	"time"

	"github.com/weir-net/weir/internal/fair"
	"github.com/weir-net/weir/internal/policy"
)

// Policed is what a link may carry by filters of tc that drop what is above: one
// filter each way where there is such a limit, else none.
type Policed struct{ Egress, Ingress []Limit }

// Any reports whether anything is policed.
func (p Policed) Any() bool { return len(p.Egress)+len(p.Ingress) > 0 }

// PoliceUnit divides every burst of such a filter: the kernel counts time in units of
// 64 ns, up to 2^32 of them, which tell so many bytes apart at any rate.
const PoliceUnit policy.Size = 4 << 10

// policed is a limit as such a filter holds it and gives it back. Its bucket collects
// what TCP needs that nobody paces, and a packet that a device takes at once always
// fits.
func policed(l policy.Limit) Limit {
	second := policy.Size(l.Max / 8)
	burst := l.Burst
	if burst == 0 {
		burst = max(second*policy.Size(fair.StreamBurst)/policy.Size(time.Second), policy.MinPoliceBurst)
	}
	burst = min(burst, 256*second)
	return Limit{Max: l.Max - l.Max%8, Burst: (burst + PoliceUnit - 1) / PoliceUnit * PoliceUnit}
}

// policed is what of a link's own limits is on the rung of filters.
func (r OwnRungs) policed(l policy.Link) (p Policed) {
	if r[PromiseEgress].Method == policy.MethodPolice {
		p.Egress = []Limit{policed(l.Egress.Limit)}
	}
	if r[PromiseIngress].Method == policy.MethodPolice {
		p.Ingress = []Limit{policed(l.Ingress.Limit)}
	}
	return p
}

// limits puts what is policed into words, behind what is said before.
func (p Policed) limits() (text string) {
	for _, l := range p.Egress {
		text += "; egress " + l.ByPolice()
	}
	for _, l := range p.Ingress {
		text += "; ingress " + l.ByPolice()
	}
	return text
}

// unlike says how the filters of two links differ, "" if they do not: "egress not
// policed -> at most 50Mbit (1MiB at once) by police".
func (p Policed) unlike(other Policed) string {
	return phrases(unlikePoliced(p.Egress, other.Egress, PromiseEgress), unlikePoliced(p.Ingress, other.Ingress, PromiseIngress))
}

func unlikePoliced(have, want []Limit, name string) string {
	if is, shall := policedWords(have), policedWords(want); is != shall {
		return name + " " + is + " -> " + shall
	}
	return ""
}

func policedWords(all []Limit) string {
	if len(all) == 0 {
		return "not policed"
	}
	text := all[0].ByPolice()
	if len(all) > 1 {
		text += fmt.Sprintf(" and %d more", len(all)-1)
	}
	return text
}

// ByPolice puts a limit into words that a filter holds.
func (l Limit) ByPolice() string { return l.String() + " by " + string(policy.MethodPolice) }

// Filtered is what a filter that polices, or the queue of a detour, was seen to let
// through.
type Filtered struct {
	Passed  Traffic     // since it was made
	Dropped uint64      // packets, since then
	Got     policy.Rate // over ShareWindow at most, in bits on the wire
	Surely  policy.Rate // likewise, at least: readings take their time
}

// Over notes how much passed in a time that was between the shortest and the longest.
func (f *Filtered) Over(shortest, longest time.Duration, bytes uint64) {
	over := func(took time.Duration) policy.Rate { return policy.Rate(float64(bytes) * 8 / took.Seconds()) }
	f.Got, f.Surely = over(shortest), over(longest)
}

// policed judges a limit that a filter of tc holds, by what it let through while it was
// looked at, if that is known.
func (j Judgement) policed(all []Limit, owner Owner, filtered map[Owner]Filtered, wrong string) []Judgement {
	if len(all) == 0 {
		return nil
	}
	return j.glanced(all[0], all[0].ByPolice(), owner, filtered, wrong)
}

// glanced judges a limit by what passed while it was looked at. words say what was read
// back, and the limit's burst is what may pass at once.
func (j Judgement) glanced(limit Limit, words string, owner Owner, filtered map[Owner]Filtered, wrong string) []Judgement {
	seen, known := filtered[owner]
	j.Priority, j.Max, j.Traffic = policy.Unset, limit.Max, seen.Passed
	evidence := "read back: " + words
	switch {
	case wrong != "":
		j.Verdict, j.Evidence = Broken, wrong
	case !known:
		j.Verdict, j.Evidence = Unprovable, evidence+"; what passed below it could not be read"
	default:
		j.Verdict, j.Evidence = seen.below(limit), evidence+"; "+seen.String()
	}
	return []Judgement{j}
}

// below judges what was let through: what is above the limit by more than a fiftieth, and
// what the bucket had collected before, is broken.
func (f Filtered) below(l Limit) Verdict {
	once := policy.Rate(8 * float64(l.Burst) / ShareWindow.Seconds())
	if f.Surely > l.Max+l.Max/50+once {
		return Broken
	}
	return Kept
}

// String puts into words what was let through.
func (f Filtered) String() string {
	text := "nothing passes"
	if f.Got > 0 {
		text = fmt.Sprintf("%s over %s", threeDigits(f.Got), ShareWindow)
	}
	return fmt.Sprintf("%s, %d packets dropped", text, f.Dropped)
}
