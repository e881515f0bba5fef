package lab

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-net/weir/internal/report"
)

// conclude turns the samples of the vrf lab into arms and claims.
func (l *vrfLab) conclude() {
	l.summarise(vrfInfo.Arms...)
	l.warn("the wires have no carrier to find: a network card whose link is taken down and up, as the kernel does to move it, may need seconds to find its own again, and lets nothing pass for as long")
	l.claim(l.onlyOne(), l.breaks(), l.mends(), l.outside(), l.survive())
	l.describe()
}

// What the lab sets out to prove.
const (
	onlyOneReached = "Without a VRF names are resolved, but of two networks with the same addresses only the first one is reached."
	stubBreaks     = "In the VRF no name is resolved where resolv.conf names a stub that is bound to lo, though the management network is reached there by address."
	doctorMends    = "After weir vrf doctor --fix each lookup in the VRF is answered by the management network's server, and each connection to a name reaches that network."
	outsideStays   = "Lookups outside of the VRF are answered by the data network's server all the time."
	sessionsLive   = "Each session that was open over the link lives on while that moves into the VRF, while lookups are mended, and while it moves back."
)

// A tally is how many of some tries went well.
type tally struct {
	what    string
	n, all  int
	wanted  int
	percent float64 // of all, with a confidence of 95 %: at least, or at most where none shall
}

// count counts what a metric tells in per cent of the same number of tries in each repetition.
func (l *vrfLab) count(what, arm, metric string, each int, wanted bool) tally {
	t := tally{what: what}
	for _, v := range l.values(arm, metric) {
		t.n += int(math.Round(v * float64(each) / 100))
		t.all += each
	}
	t.percent = 100 * report.Whole(t.all)
	if wanted {
		t.wanted = t.all
	} else {
		t.percent = 100 - t.percent
	}
	return t
}

func (t tally) kept() bool { return t.n == t.wanted }

// String says how much the tries tell of all others, too, where they agree.
func (t tally) String() string {
	text := fmt.Sprintf("%d of %d %s", t.n, t.all, t.what)
	switch {
	case !t.kept():
		return text
	case t.wanted == 0:
		return fmt.Sprintf("%s (below %.1f %% of all, with a confidence of 95 %%)", text, t.percent)
	}
	return fmt.Sprintf("%s (over %.1f %% of all, with a confidence of 95 %%)", text, t.percent)
}

// decided is a claim that all of some tallies decide.
func decided(text string, all ...tally) report.Claim {
	kept := true
	var words []string
	for _, t := range all {
		if t.all == 0 {
			return report.Unproven(text, "nothing was measured")
		}
		kept = kept && t.kept()
		words = append(words, t.String())
	}
	return report.Kept(text, kept, strings.Join(words, "; "))
}

func (l *vrfLab) onlyOne() report.Claim {
	return decided(onlyOneReached,
		l.count("lookups answered by the data network's server", "default", "answered_by_data", l.tries, true),
		l.count("by the management network's", "default", "answered_by_management", l.tries, false),
		l.count("connections to a name reached the data network", "default", "connect_ok", l.tries, true),
	)
}

func (l *vrfLab) breaks() report.Claim {
	c := decided(stubBreaks,
		l.count("lookups answered", "vrf_broken_dns", "lookup_ok", l.tries, false),
		l.count("connections to a name", "vrf_broken_dns", "connect_ok", l.tries, false),
		l.count("connections to an address reached the management network", "vrf_broken_dns", "connect_by_address_ok", l.tries, true),
	)
	if l.cause != "" {
		c.Evidence += "; weir vrf doctor says: " + l.cause
	}
	return c
}

func (l *vrfLab) mends() report.Claim {
	return decided(doctorMends,
		l.count("lookups answered by the management network's server", "vrf_fixed", "answered_by_management", l.tries, true),
		l.count("by the data network's", "vrf_fixed", "answered_by_data", l.tries, false),
		l.count("connections to a name reached the management network", "vrf_fixed", "connect_ok", l.tries, true),
	)
}

func (l *vrfLab) outside() report.Claim {
	var all []tally
	for _, arm := range vrfInfo.Arms[1:] {
		all = append(all, l.count("lookups in arm "+arm, arm, "lookup_outside_ok", l.tries, true))
	}
	return decided(outsideStays, all...)
}

func (l *vrfLab) survive() report.Claim {
	var all []tally
	for _, x := range []struct{ what, arm, metric string }{
		{"sessions before the move", "default", "session_survived"},
		{"after it", "vrf_broken_dns", "session_survived"},
		{"after lookups were mended", "vrf_fixed", "session_survived"},
		{"after the move back", "vrf_fixed", "session_back"},
	} {
		all = append(all, l.count(x.what, x.arm, x.metric, len(families)*l.tries, true))
	}
	c := decided(sessionsLive, all...)
	for i, ip := range []string{"IPv4", "IPv6"} {
		if words := l.gap(families[i]); words != "" {
			c.Evidence += fmt.Sprintf("; the move let no datagram of %s pass for %s", ip, words)
		}
	}
	return c
}

// gap words for how long a move stopped datagrams, beside what there is without one.
func (l *vrfLab) gap(family string) string {
	gap, still := report.Summarise("ms", l.values("vrf_broken_dns", "gap_ms"+family)), report.Summarise("ms", l.values("default", "gap_ms"+family))
	if gap.N == 0 || still.N == 0 {
		return ""
	}
	lost := report.Summarise("", l.values("vrf_broken_dns", "lost"+family))
	return fmt.Sprintf("%.1f ms (%.1f to %.1f; without a move %.1f), and %.0f (%.0f to %.0f) were lost", gap.Median, gap.Min, gap.Max, still.Median, lost.Median, lost.Min, lost.Max)
}

func (l *vrfLab) describe() {
	e := l.result.Environment
	e.Rate, e.Bottleneck = "", "none: the wires have no queue"
	e.Rung = "VRF, sockets bound by their cgroup"
	e.Policy = l.policy()
	l.result.About = &report.About{
		Title: "A management network in a VRF of its own",
		Summary: fmt.Sprintf("A host has a data and a management network. Both have the same addresses, those of the name server among them, which gives every name another address on each; only the host's sessions over the management link go by addresses of its own. "+
			"resolv.conf names a stub at %s, which is bound to lo and asks %s by sockets that are in no VRF, as systemd-resolved does. In default there is no VRF; in vrf_broken_dns Weir has moved the management link into one; in vrf_fixed weir vrf doctor --fix has mended the lookups there. "+
			"In each arm getent looks %d names up as weir vrf exec runs it, every other one by TCP, in a mount namespace with these files; what it finds is connected to, and who is reached says so. Of %d sessions, over IPv4 and IPv6, each is asked for an answer. Around each change two processes that go before all others send datagrams over the link, there and back, one every %s or as often as the kernel's timers allow, and ask over a session of their own.",
			stubAddress, nameServer, l.tries, len(families)*l.tries, pulse),
		Metrics: vrfLabels(),
	}
	l.publish()
}

func vrfLabels() []report.Label {
	labels := []report.Label{
		{Name: "lookup_ok", Text: "Lookups answered by the right network's server"},
		{Name: "connect_ok", Text: "Connections to a name that reached that network"},
		{Name: "session_survived", Text: "Open sessions that carry data"},
		{Name: "session_back", Text: "Open sessions that carry data, once the link is back"},
		{Name: "answered_by_management", Text: "Lookups answered by the management network's server"},
		{Name: "answered_by_data", Text: "Lookups answered by the data network's server"},
		{Name: "questions_management", Text: "Questions that arrived at the management network's server"},
		{Name: "questions_data", Text: "Questions that arrived at the data network's server"},
		{Name: "connect_by_address_ok", Text: "Connections to an address that reached the management network"},
		{Name: "lookup_outside_ok", Text: "Lookups outside of the VRF answered by the data network's server"},
	}
	for i, ip := range []string{"IPv4", "IPv6"} {
		for _, way := range []struct{ word, text string }{{"", ip}, {"back_", ip + ", as the link moves back"}} {
			labels = append(labels,
				report.Label{Name: way.word + "gap_ms" + families[i], Text: "The longest time without a datagram, " + way.text},
				report.Label{Name: way.word + "lost" + families[i], Text: "Datagrams lost, " + way.text},
				report.Label{Name: way.word + "session_wait_ms" + families[i], Text: "The longest that a session waited for an answer, " + way.text},
			)
		}
	}
	return append(labels, report.Label{Name: "apply_ms", Text: "weir apply, all of it"})
}

// publish adds what happened to somebody who did it by hand.
func (l *vrfLab) publish() {
	const byHand = "apt-get update by ip vrf exec on Ubuntu 18.04: four mirrors by systemd-resolved's stub, and with its servers in /etc/resolv.conf, for which it was stopped"
	const cut = "the same, done by hand from an ssh session: it is lost"
	for _, f := range []struct {
		arm, metric string
		percent     float64
		source      string
	}{
		{"vrf_broken_dns", "lookup_ok", 0, byHand},
		{"vrf_fixed", "lookup_ok", 100, byHand},
		{"vrf_broken_dns", "session_survived", 0, cut},
	} {
		l.result.Published = append(l.result.Published, report.Published{Arm: f.arm, Metric: f.metric, Value: f.percent, Unit: "%", Source: f.source})
	}
}
