package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestParseMeaning(t *testing.T) {
	src := `version: 1
links:
  eth1: {rate: 1.5Gbit, scheduler: htb, adopt: true, egress: {max: 1.5Gbit}, ingress: {max: 100Gbit}}
  eth0: {rate: 1Mbit}
workloads:
  web:
    match:
      - unit: nginx
      - port: [443, "80-81"]
        protocol: tcp
        cidr: 192.0.2.0/24
        dscp: ef
      - cgroup: /sys/fs/cgroup/memory/x
    priority: {eth1: 2, default: 4}
  old:
    match: [{user: 1000}, {pid: 1}, {exe: /bin/x}]
    priority: {wlan0: 15}
    via: net_prio
  held:
    match: [{pid: 2}]
    egress: {max: 1.5Mbit}
  both: {match: [{pid: 3}], egress: {max: 64Kbit, pps: 20000, links: {eth1: {max: 2Mbit, pps: 10}, eth0: {max: 64Kbit}}}, priority: 1}
  plain: {match: [{protocol: 0}], priority: 0, via: bpf}
  gets: {match: [{pid: 4}], ingress: {max: 64Kbit, pps: 8000000}}
  all: {match: [{pid: 5}], ingress: {max: 100Gbit, burst: 1.5MiB}, egress: {max: 1Mbit}, priority: 1}
  share: {match: [{pid: 6}], egress: {min: 33.3%, links: {eth1: {max: 50%, min: 8Kbit, method: htb}}}}
  sends: {match: [{pid: 7}], egress: [{to: ["2001:db8::/32", 192.0.2.1], max: 1Mbit}, {max: 2Mbit, weight: 7}, {to: 0.0.0.0/0, pps: 20}]}
  holds: {match: [{pid: 8}], tcp-memory: {max: 1MiB, when-full: refuse}}
default: {priority: 3}
`
	got, err := Parse("dir/p.yaml", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	flow := func(f Flow) Selector { return Selector{Kind: KindFlow, Flow: f} }
	want := &Policy{
		File: "dir/p.yaml",
		Links: []Link{
			{Name: "eth0", Rate: 1_000_000, Scheduler: Auto},
			{Name: "eth1", Rate: 1_500_000_000, Scheduler: HTB, Adopt: true,
				Egress: Bandwidth{Limit: Limit{Max: 1_500_000_000}}, Ingress: Bandwidth{Limit: Limit{Max: 100_000_000_000}}},
		},
		Workloads: []Workload{
			{
				Name: "web",
				Match: []Selector{
					{Kind: KindUnit, Cgroup: Cgroup{Pattern: "/**/nginx.service"}},
					flow(Flow{Protocol: 6, Ports: []PortRange{{80, 81}, {443, 443}}, Prefix: netip.MustParsePrefix("192.0.2.0/24"), DSCP: 46}),
					{Kind: KindCgroup, Cgroup: Cgroup{Controller: "memory", Pattern: "/x"}},
				},
				Contract: Contract{Priority: Priority{Default: 4, PerLink: map[string]Level{"eth1": 2}}},
			},
			{
				Name:     "old",
				Match:    []Selector{{Kind: KindUser, User: "1000"}, {Kind: KindPID, PID: 1}, {Kind: KindExe, Exe: "/bin/x"}},
				Contract: Contract{Priority: Priority{Default: Unset, PerLink: map[string]Level{"wlan0": 15}}},
				Via:      ViaNetPrio,
			},
			{
				Name:     "held",
				Match:    []Selector{{Kind: KindPID, PID: 2}},
				Contract: Contract{Priority: Priority{Default: Unset}, Egress: Egress{Limit: Limit{Max: 1_500_000}}},
			},
			{
				Name:  "both",
				Match: []Selector{{Kind: KindPID, PID: 3}},
				Contract: Contract{Priority: Priority{Default: 1},
					Egress: Egress{Limit: Limit{Max: 64_000, PPS: 20_000}, PerLink: map[string]Limit{"eth0": {Max: 64_000}, "eth1": {Max: 2_000_000, PPS: 10}}}},
			},
			{
				Name:     "plain",
				Match:    []Selector{flow(Flow{Protocol: 0, DSCP: -1})},
				Contract: Contract{Priority: Priority{Default: 0}},
			},
			{
				Name:     "gets",
				Match:    []Selector{{Kind: KindPID, PID: 4}},
				Contract: Contract{Priority: Priority{Default: Unset}, Ingress: Bandwidth{Limit: Limit{Max: 64_000, PPS: 8_000_000}}},
			},
			{
				Name:  "all",
				Match: []Selector{{Kind: KindPID, PID: 5}},
				Contract: Contract{Priority: Priority{Default: 1},
					Egress: Egress{Limit: Limit{Max: 1_000_000}}, Ingress: Bandwidth{Limit: Limit{Max: 100_000_000_000, Burst: 1536 << 10}}},
			},
			{
				Name:  "share",
				Match: []Selector{{Kind: KindPID, PID: 6}},
				Contract: Contract{Priority: Priority{Default: Unset}, Egress: Egress{
					PerLink: map[string]Limit{"eth1": {Max: 750_000_000, Method: MethodHTB}}, Min: map[string]Rate{"eth0": 333_000, "eth1": 8_000},
				}},
			},
		},
		Default: &Contract{Priority: Priority{Default: 3}},
	}
	want.Workloads = append(want.Workloads, Workload{
		Name: "sends", Match: []Selector{{Kind: KindPID, PID: 7}},
		Contract: Contract{Priority: Priority{Default: Unset}, Egress: Egress{Limit: Limit{Max: 2_000_000}, Weight: 7, Toward: []Toward{
			{Prefixes: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/32")}, Limit: Limit{Max: 1_000_000}},
			{Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, Limit: Limit{PPS: 20}},
		}}},
	}, Workload{
		Name: "holds", Match: []Selector{{Kind: KindPID, PID: 8}},
		Contract: Contract{Priority: Priority{Default: Unset}, TCPMemory: TCPMemory{Soft: 512 << 10, Max: 1 << 20, WhenFull: WhenFullRefuse}},
	})
	opts := []cmp.Option{cmpopts.IgnoreTypes(Span{}), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	web := got.Workloads[0]
	for what, c := range map[string]struct{ got, want Span }{
		"link":             {got.Links[1].Span, Span{3, 3, 3, 7}},
		"scheduler":        {got.Links[1].SchedulerSpan, Span{3, 36, 3, 39}},
		"none":             {got.Links[0].SchedulerSpan, Span{}},
		"egress of a link": {got.Links[1].Egress.Span, Span{3, 54, 3, 60}}, "ingress": {got.Links[1].Ingress.Span, Span{3, 78, 3, 85}},
		"no limit":  {got.Links[0].Egress.Span, Span{}},
		"workload":  {web.Span, Span{6, 3, 6, 6}},
		"unit":      {web.Match[0].Span, Span{8, 15, 8, 20}},
		"flow":      {web.Match[1].Span, Span{9, 9, 12, 17}},
		"contract":  {web.Contract.Span, Span{14, 5, 14, 13}},
		"egress":    {got.Workloads[2].Contract.Egress.Span, Span{21, 5, 21, 11}},
		"limit":     {got.Workloads[2].Contract.Span, Span{21, 5, 21, 11}},
		"both":      {got.Workloads[3].Contract.Span, Span{22, 123, 22, 131}},
		"no egress": {web.Contract.Egress.Span, Span{}},
		"gets":      {got.Workloads[5].Contract.Ingress.Span, Span{24, 29, 24, 36}},
		"its limit": {got.Workloads[5].Contract.Span, Span{24, 29, 24, 36}},
		"all":       {got.Workloads[6].Contract.Span, Span{25, 90, 25, 98}},
		"holds":     {got.Workloads[9].Contract.TCPMemorySpan, Span{28, 30, 28, 40}},
		"memory":    {got.Workloads[9].Contract.Span, Span{28, 30, 28, 40}},
		"no memory": {web.Contract.TCPMemorySpan, Span{}},
		"default":   {got.Default.Span, Span{29, 1, 29, 8}},
	} {
		if c.got != c.want {
			t.Errorf("span of %s: %v, want %v", what, c.got, c.want)
		}
	}
}

// The encodings in which a file may come, and those in which it may not.
func TestParseEncodings(t *testing.T) {
	const good = "version: 1\nlinks: {eth0: {}}\ndefault: {priority: 1}\n"
	for name, src := range map[string]string{
		"byte order mark": "\ufeff" + good,
		"CRLF":            strings.ReplaceAll(good, "\n", "\r\n"),
		"no last newline": strings.TrimSuffix(good, "\n"),
		"document marks":  "---\n" + good + "...\n",
		"JSON":            `{"version": 1, "links": {"eth0": {}}, "default": {"priority": 1}}`,
		"comment":         "# größer\n" + good,
	} {
		if _, err := Parse("p.yaml", []byte(src)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for src, want := range map[string]string{
		"version: 1\n# \xff\n":           "2:3: the text is not UTF-8",
		"v\x00e\x00":                     "1:2: a control character",
		"\xff\xfev\x00":                  "1:1: the text is not UTF-8",
		"version: 1\rlinks: {}\r":        "1:11: a control character",
		"version: 1 # \u2028 x":          "1:14: a control character",
		"version: 1\n# é\u0085":          "2:4: a control character",
		"\ufeffversion: 1\nx\ufeff: 1\n": "2:2: a control character",
		"version: 1\nx: \x1b[31m\n":      "2:4: a control character",
		"\ufeffversion: 2\r\n":           "1:10: version",
		"# é\nvérsion: 1\nversion: é2\n": "2:1: unknown key",
	} {
		_, err := Parse("p.yaml", []byte(src))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", src, err, want)
		}
	}
}

func TestParseDeepNesting(t *testing.T) {
	for _, open := range []string{"[", "{a: ", "- ", "? "} {
		for _, n := range []int{100, 5000, 20_000} {
			if _, err := Parse("p.yaml", []byte(strings.Repeat(open, n))); err == nil {
				t.Errorf("%d of %q are accepted", n, open)
			}
		}
	}
}

// A file on one line, such as JSON from a program, must not cost its length for
// every value in it.
func TestParseOneLongLine(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"version": 1, "links": {"eth0": {}}, "workloads": {`)
	for i := range 10_000 {
		fmt.Fprintf(&b, `"w%d": {"match": [{"user": "ü%d"}], "priority": 16},`, i, i)
	}
	b.WriteString("}}")
	_, err := Parse("p.json", []byte(b.String()))
	var errs Errors
	if !errors.As(err, &errs) || len(errs) != 10_000 {
		t.Fatalf("%d errors", len(errs))
	}
	if text := errs.Render("p.json", []byte(b.String()), false); strings.Count(text, "\n") != 4*10_000+1 {
		t.Errorf("%d lines", strings.Count(text, "\n"))
	}
}

// drawPolicy makes the text of a valid policy, and counts its workloads.
func drawPolicy(t *rapid.T) (src string, workloads int) {
	links := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z][a-z0-9.-]{0,14}`).Filter(func(s string) bool {
		return s != "default" && s != "all"
	}), 0, 4, rapid.ID).Draw(t, "links")
	var b strings.Builder
	b.WriteString("version: 1\n")
	if len(links) > 0 {
		b.WriteString("links:\n")
	}
	most := map[string]Rate{} // what a limit of a link may be
	for _, link := range links {
		fmt.Fprintf(&b, "  \"%s\": {scheduler: %s", link, rapid.SampledFrom(schedulers()).Draw(t, "scheduler"))
		most[link] = MaxEgress
		if rapid.Bool().Draw(t, "rated") {
			rate := Rate(rapid.Uint64Min(uint64(MinRate)).Draw(t, "rate"))
			fmt.Fprintf(&b, ", rate: %s", rate)
			most[link] = min(rate, MaxEgress)
		}
		if most[link] >= MinEgress && rapid.Bool().Draw(t, "egress") {
			fmt.Fprintf(&b, ", egress: {max: %s}", min(most[link], drawMax(t)))
		}
		if rapid.Bool().Draw(t, "ingress") {
			fmt.Fprintf(&b, ", ingress: {max: %s}", drawMax(t))
		}
		fmt.Fprintf(&b, ", adopt: %v}\n", rapid.Bool().Draw(t, "adopt"))
	}
	priority := func() string {
		level := rapid.IntRange(0, 15)
		if rapid.Bool().Draw(t, "by link") {
			return fmt.Sprintf("{\"%s\": %d, default: %d}", rapid.SampledFrom(links).Draw(t, "link"), level.Draw(t, "level"), level.Draw(t, "default"))
		}
		return fmt.Sprint(level.Draw(t, "level"))
	}
	limitable := slices.DeleteFunc(slices.Clone(links), func(link string) bool { return most[link] < MinEgress })
	promises := func() string {
		egress := func() string {
			var keys []string
			if len(limitable) == 0 || rapid.Bool().Draw(t, "of all links") {
				keys = append(keys, fmt.Sprintf("max: %s", drawMax(t)))
			}
			if keys == nil || len(limitable) > 0 && rapid.Bool().Draw(t, "of single links") {
				some := limitable[:rapid.IntRange(1, len(limitable)).Draw(t, "limited")]
				each := make([]string, len(some))
				for i, link := range some {
					each[i] = fmt.Sprintf("\"%s\": {max: %s}", link, min(most[link], drawMax(t)))
				}
				keys = append(keys, "links: {"+strings.Join(each, ", ")+"}")
			}
			return "egress: {" + strings.Join(keys, ", ") + "}"
		}
		kinds := 4 // all that needs no link
		if len(links) > 0 {
			kinds = rapid.IntRange(1, 7).Draw(t, "promises")
		}
		var keys []string
		if kinds&1 != 0 {
			keys = append(keys, egress())
		}
		if kinds&2 != 0 {
			keys = append(keys, "priority: "+priority())
		}
		if kinds&4 != 0 {
			keys = append(keys, fmt.Sprintf("ingress: {max: %s}", drawMax(t)))
		}
		return strings.Join(keys, ", ")
	}
	b.WriteString("workloads:\n")
	// Selectors are numbered, so that no two are the same.
	for i := range rapid.IntRange(1, 8).Draw(t, "workloads") {
		workloads++
		items := make([]string, rapid.IntRange(1, 4).Draw(t, "items"))
		for j := range items {
			n := i*10 + j + 1
			items[j] = rapid.SampledFrom([]string{
				fmt.Sprintf("{pid: %d}", n),
				fmt.Sprintf("{cgroup: /c%d/*/**}", n),
				fmt.Sprintf("{cgroup: memory:/c%d}", n),
				fmt.Sprintf("{cgroup: \"name=My Box:/c%d\"}", n),
				fmt.Sprintf("{unit: u%d}", n),
				fmt.Sprintf("{unit: \"u%d@*.scope\"}", n),
				fmt.Sprintf("{user: u%d}", n),
				fmt.Sprintf("{user: %d}", n),
				fmt.Sprintf("{exe: /bin/x%d}", n),
				fmt.Sprintf("{port: %d}", n),
				fmt.Sprintf("{port: [%d, \"%d-%d\"], protocol: %s}", n, n*10+1000, n*10+1009, []string{"tcp", "udp", "sctp"}[n%3]),
				fmt.Sprintf("{cidr: 10.%d.0.0/16, protocol: icmp}", n),
				fmt.Sprintf("{cidr: \"2001:db8:%d::/48\", dscp: %d}", n, n%64),
				fmt.Sprintf("{protocol: %d}", 100+n),
			}).Draw(t, "item")
		}
		promised := promises()
		sockets := func(item string) bool {
			return slices.ContainsFunc(processKeys, func(key string) bool { return strings.HasPrefix(item, "{"+key+":") })
		}
		if slices.ContainsFunc(items, sockets) && rapid.Bool().Draw(t, "tcp-memory") {
			promised += ", tcp-memory: " + drawTCPMemory(t).String()
		}
		fmt.Fprintf(&b, "  w%d: {match: [%s], %s}\n", i, strings.Join(items, ", "), promised)
	}
	if len(links) > 0 && rapid.Bool().Draw(t, "has default") {
		fmt.Fprintf(&b, "default: {priority: %s}\n", priority())
	}
	return b.String(), workloads
}

func drawMax(t *rapid.T) Rate {
	return Rate(rapid.Uint64Range(uint64(MinEgress), uint64(MaxEgress)).Draw(t, "max"))
}

// Parse takes every valid policy, and the schema takes what Parse takes.
func TestParseTakesValidPolicies(t *testing.T) {
	schema := compileSchema(t)
	rapid.Check(t, func(rt *rapid.T) {
		src, workloads := drawPolicy(rt)
		p, err := Parse("p.yaml", []byte(src))
		if err != nil {
			rt.Fatalf("%v\n%s", err, src)
		}
		if len(p.Workloads) != workloads || !slices.IsSortedFunc(p.Links, func(a, b Link) int { return strings.Compare(a.Name, b.Name) }) {
			rt.Fatalf("%d workloads, links %v", len(p.Workloads), p.Links)
		}
		checkPolicy(rt, p)
		if err := validate(t, schema, src); err != nil {
			rt.Fatalf("the schema refuses: %v\n%s", err, src)
		}
	})
}

// A valid policy with one character removed, doubled or replaced never panics,
// and whatever is still taken is valid.
func TestParseDamagedPolicies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src, _ := drawPolicy(t)
		damaged := []byte(src)
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			at := rapid.IntRange(0, len(damaged)-1).Draw(t, "at")
			with := rapid.SampledFrom([]string{"", "\n", " ", "\t", "{", "]", ":", "\"", "&", "*", "0", "\xff", "é", "- "}).Draw(t, "with")
			damaged = slices.Concat(damaged[:at], []byte(with), damaged[at+1:])
			if len(damaged) == 0 {
				return
			}
		}
		checkParse(t, damaged)
	})
}

type failer interface {
	Helper()
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// checkParse holds what is true of any text.
func checkParse(t failer, src []byte) {
	t.Helper()
	p, err := Parse("p.yaml", src)
	if err == nil {
		checkPolicy(t, p)
		return
	}
	var errs Errors
	if !errors.As(err, &errs) || len(errs) == 0 || p != nil {
		t.Fatalf("%v, %v", p, err)
	}
	text := errs.Render("p.yaml", src, false)
	if lines := strings.Count(text, "\n"); lines > 6*len(errs)+1 {
		t.Errorf("%d lines for %d errors:\n%s", lines, len(errs), text)
	}
	lines := newSource(src).lines
	for _, d := range errs {
		if d.Message == "" || d.Line < 1 || d.Line > len(lines) || d.Column < 1 || d.Column > len([]rune(lines[d.Line-1]))+1 {
			t.Errorf("%+v is outside of %q", d, src)
		}
		if len(d.Related) > 0 && d.Help != "" {
			t.Errorf("%q has a related place and help, which is more than six lines", d.Message)
		}
	}
	if _, again := Parse("p.yaml", src); again.Error() != err.Error() {
		t.Errorf("two runs differ:\n%v\n%v", err, again)
	}
}

// checkPolicy holds what others rely on: past Parse an invalid value cannot
// exist.
func checkPolicy(t failer, p *Policy) {
	t.Helper()
	checkPriority := func(p Priority) {
		if p.Empty() || p.Default < Unset || p.Default >= Levels {
			t.Errorf("priority %v", p)
		}
		for link, level := range p.PerLink {
			if CheckLinkName(link) != nil || level < 0 || level >= Levels {
				t.Errorf("priority %v", p)
			}
		}
	}
	checkLimit := func(l Limit, at Span) {
		if l == (Limit{}) || l.Max != 0 && (l.Max < MinEgress || l.Max > MaxEgress) ||
			l.PPS != 0 && (l.PPS < MinPPS || l.PPS > MaxPPS) || at.Line == 0 {
			t.Errorf("limit %v at %v", l, at)
		}
	}
	declared := map[string]bool{}
	for _, l := range p.Links {
		declared[l.Name] = true
		if CheckLinkName(l.Name) != nil || l.Scheduler == "" || l.Span.Line == 0 {
			t.Errorf("link %+v", l)
		}
		for _, b := range []Bandwidth{l.Egress, l.Ingress} {
			if b != (Bandwidth{}) {
				checkLimit(b.Limit, b.Span)
			}
		}
		if l.Rate != 0 && l.Egress.Max > l.Rate {
			t.Errorf("link %+v", l)
		}
	}
	for _, w := range p.Workloads {
		if checkWorkloadName(w.Name) != nil || len(w.Match) == 0 || w.Span.Line == 0 || w.Contract.Span.Line == 0 {
			t.Errorf("workload %+v", w)
		}
		e, in, memory := w.Contract.Egress, w.Contract.Ingress, w.Contract.TCPMemory
		if !w.Contract.Limited() && memory == (TCPMemory{}) || !w.Contract.Priority.Empty() {
			checkPriority(w.Contract.Priority)
		}
		if e.Limit != (Limit{}) {
			checkLimit(e.Limit, e.Span)
		}
		for link, limit := range e.PerLink {
			checkLimit(limit, e.Span)
			if !declared[link] {
				t.Errorf("workload %+v", w)
			}
		}
		taken := map[netip.Prefix]bool{}
		for _, to := range e.Toward {
			checkLimit(to.Limit, to.Span)
			for _, prefix := range to.Prefixes {
				if prefix != prefix.Masked() || prefix.Addr().Is4In6() || taken[prefix] {
					t.Errorf("workload %+v", w)
				}
				taken[prefix] = true
			}
			if len(to.Prefixes) == 0 {
				t.Errorf("workload %+v", w)
			}
		}
		if in != (Bandwidth{}) {
			checkLimit(in.Limit, in.Span)
		}
		if memory != (TCPMemory{}) {
			byMemcg := memory == TCPMemory{Max: memory.Max, Via: MemoryViaMemcg} && len(w.Match) == 1 && w.Match[0].Cgroup.Controller == "memory"
			if memory.Max < MinTCPMemory || memory.Max > MaxTCPMemory || !byMemcg && (memory.Soft < MinTCPMemorySoft || memory.Soft > memory.Max || memory.Via != MemoryViaBPF) ||
				!slices.Contains(whenFulls(), memory.WhenFull) || w.Via != ViaBPF || w.Contract.TCPMemorySpan.Line == 0 ||
				!slices.ContainsFunc(w.Match, func(s Selector) bool { return s.Kind != KindFlow }) {
				t.Errorf("workload %+v", w)
			}
		}
		if w.Contract.Limited() && w.Via != ViaBPF || e.Limited() && len(p.Links) == 0 {
			t.Errorf("workload %+v", w)
		}
		for _, s := range w.Match {
			switch s.Kind {
			case KindCgroup, KindUnit:
				if !strings.HasPrefix(s.Cgroup.Pattern, "/") {
					t.Errorf("selector %+v", s)
				}
			case KindFlow:
				count := 0
				for _, r := range s.Flow.Ports {
					count += r.Count()
				}
				if s.Flow.String() == "any" || count > maxPorts || s.Flow.Prefix.IsValid() && s.Flow.Prefix != s.Flow.Prefix.Masked() {
					t.Errorf("selector %+v", s)
				}
			}
			if s.Kind < KindPID || s.Kind > KindFlow || s.Span.Line == 0 || s.String() == "" {
				t.Errorf("selector %+v", s)
			}
		}
	}
	if p.Default != nil {
		checkPriority(p.Default.Priority)
	}
}

func FuzzParse(f *testing.F) {
	for _, src := range badPolicies(f) {
		f.Add(src)
	}
	for _, src := range []string{"", "version: 1\n", "%", "{", "\ufeff", "? ? ?", "a: |\n b", "a: >-\n\n", "'", "\"\\", "!!", "&a *a", "- - -", "{,}"} {
		f.Add([]byte(src))
	}
	f.Add(manyWorkloads(3))
	f.Fuzz(func(t *testing.T, src []byte) { checkParse(t, src) })
}
