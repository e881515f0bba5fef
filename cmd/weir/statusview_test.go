package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/state"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)

// sample is a host with one link on which all is well.
func sample() *agent.Status {
	applied := noon.Add(-3 * time.Hour)
	return &agent.Status{
		Verdict: "kept: all 2 promises", OK: true, Policy: "policy.yaml", Applied: &applied,
		Links: []agent.LinkStatus{{
			Name: "eth0", Queue: "prio with 4 classes", Why: "the best there is", Hook: "tcx",
			Classes: []agent.ClassStatus{{Class: 0, Packets: 1204511, Bytes: 1707320112, Drops: 37, Backlog: 66616}, {Class: 1}, {Class: 2}, {Class: 3, Packets: 88, Bytes: 9120}},
		}},
		Promises: []plan.Judgement{
			{Workload: "ssh", Link: "eth0", Promise: plan.PromisePriority, Priority: 15, Verdict: plan.Kept, Evidence: "read back: priority 15 of prio with 4 classes; no packet yet", Traffic: plan.Traffic{Packets: 88, Bytes: 9120}},
			{Workload: "backup", Link: "eth0", Promise: plan.PromisePriority, Priority: 2, Verdict: plan.Kept, Evidence: "read back: priority 2 of prio with 4 classes; no packet yet"},
		},
		Unclaimed: map[string]agent.Unnamed{"eth0": {Unclaimed: plan.Traffic{Packets: 1204423, Bytes: 1707310992}, Unclassified: plan.Traffic{Packets: 1, Bytes: 60}}},
	}
}

// limited judges the limit of a workload of sample.
func limited(verdict plan.Verdict, evidence string) plan.Judgement {
	return plan.Judgement{Workload: "backup", Link: plan.EveryLink, Promise: plan.PromiseEgress, Priority: policy.Unset, Max: 5e7,
		Verdict: verdict, Evidence: evidence, Traffic: plan.Traffic{Packets: 5000, Bytes: 7e6}}
}

func TestStatusView(t *testing.T) {
	for _, tt := range []struct {
		name  string
		width int
		edit  func(*agent.Status)
		want  string
	}{
		{"kept", 80, func(*agent.Status) {}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

link eth0  prio with 4 classes, by tcx
  class  priorities    packets      sent  dropped   waiting
      3       12-15         88  8.91 KiB        0       0 B
      0         0-3  1,204,511  1.59 GiB       37  65.1 KiB
  nothing sent at 8-11, 4-7
  the best there is

workload  link  promise      verdict  packets      sent  evidence
ssh       eth0  priority 15  kept          88  8.91 KiB  read back: priority 15
backup    eth0  priority 2   kept           0       0 B  read back: priority 2

nobody's      link    packets      sent
unclaimed     eth0  1,204,423  1.59 GiB
unclassified  eth0          1      60 B
`},
		{"narrow", 40, func(*agent.Status) {}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00
(3 h ago)

link eth0  prio with 4 classes, by tcx
  class  priorities    packets  dropped
      3       12-15         88        0
      0         0-3  1,204,511       37
  nothing sent at 8-11, 4-7
  the best there is

workload  link  promise      verdict
ssh       eth0  priority 15  kept
backup    eth0  priority 2   kept

nobody's      link    packets      sent
unclaimed     eth0  1,204,423  1.59 GiB
unclassified  eth0          1      60 B
`},
		{"nothing", 80, func(s *agent.Status) { *s = agent.Status{OK: true, Verdict: "nothing is applied"} }, `
nothing is applied
`},
		{"broken", 80, func(s *agent.Status) {
			s.OK, s.Verdict = false, "broken: 1 of 1 promises, 2 objects differ from the policy"
			s.Links, s.Unclaimed = nil, nil
			s.Proved = &state.Proof{When: s.Applied.Add(time.Minute), Verb: "set"}
			s.Promises = []plan.Judgement{{Workload: "ssh", Link: "eth0", Promise: plan.PromisePriority, Priority: 15, Verdict: plan.Broken, Evidence: "its programs do not run"}}
			s.Differences = []plan.Difference{{Op: plan.Change, Object: "link eth0", Detail: "its programs do not run"}, {Op: plan.Add, Object: "workload web", Detail: "as it comes: port: 80"}}
		}, `
broken: 1 of 1 promises, 2 objects differ from the policy
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on eth0
  wanted  ssh priority 15
  got     its programs do not run
  since   found kept at 2026-05-04 09:01:00 by weir set, and broken now

not as the policy says
+ workload web: as it comes: port: 80
  next    weir apply policy.yaml

workload  link  promise      verdict  packets  sent  evidence
ssh       eth0  priority 15  broken         0   0 B  see above
`},
		{"not provable", 80, func(s *agent.Status) {
			s.Verdict, s.Links, s.Unclaimed = "kept: 0 of 1 promises; 1 can not be proved here", nil, nil
			s.Promises = []plan.Judgement{{Workload: "ssh", Link: "eth0", Promise: plan.PromisePriority, Priority: 15, Verdict: plan.Unprovable,
				Evidence: "read back: priority 15 of fq with 3 classes; no packet yet; fq's bands are weighted, not strict, and older kernels have none"}}
		}, `
kept: 0 of 1 promises; 1 can not be proved here
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

workload  link  promise      verdict            packets  sent
ssh       eth0  priority 15  not provable here        0   0 B
  not provable on eth0: fq's bands are weighted, not strict, and older kernels
                        have none
`},
		{"shares", 90, func(s *agent.Status) {
			s.Links, s.Unclaimed, s.OK = nil, nil, false
			share := func(workload string, verdict plan.Verdict, evidence string) plan.Judgement {
				return plan.Judgement{Workload: workload, Link: "eth0", Promise: plan.PromiseShare, Priority: policy.Unset, Min: 2e7, Verdict: verdict, Evidence: "read back: share 1 of htb with 8 classes at 100Mbit; " + evidence}
			}
			s.Promises = []plan.Judgement{
				share("idle", plan.Kept, "nothing of it waits"), share("busy", plan.Kept, "20.1Mbit over 500ms, and more waits"),
				share("slow", plan.Unprovable, "19Mbit over 500ms, and more waits: too few packets to tell"), share("late", plan.Broken, "9.8Mbit over 500ms, and more waits"),
			}
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on eth0
  wanted  late at least 20Mbit
  got     read back: share 1 of htb with 8 classes at 100Mbit; 9.8Mbit over 500ms, and
          more waits
  next    weir status, once more: what counts is 500ms in which packets come or wait

workload  link  promise          verdict            packets  sent  evidence
idle      eth0  at least 20Mbit  kept                     0   0 B  nothing of it waits
busy      eth0  at least 20Mbit  kept                     0   0 B  20.1Mbit over 500ms
slow      eth0  at least 20Mbit  not provable here        0   0 B  19Mbit over 500ms
late      eth0  at least 20Mbit  broken                   0   0 B  see above
  not provable on eth0: 19Mbit over 500ms, and more waits: too few packets to tell
`},
		{"a link's own limits, of filters", 100, func(s *agent.Status) {
			s.Links, s.Unclaimed, s.OK = nil, nil, false
			limit := func(link, promise string, verdict plan.Verdict, evidence string) plan.Judgement {
				return plan.Judgement{Link: link, Promise: promise, Priority: policy.Unset, Max: 2e7, Verdict: verdict,
					Evidence: "read back: at most 20Mbit (512KiB at once) by police; " + evidence, Traffic: plan.Traffic{Packets: 12, Bytes: 3456}}
			}
			s.Promises = []plan.Judgement{
				limit("eth0", plan.PromiseEgress, plan.Kept, "nothing passes, 0 packets dropped"),
				limit("eth0", plan.PromiseIngress, plan.Broken, "39.8Mbit over 500ms, 4 packets dropped"),
			}
			for _, j := range s.Promises {
				s.Limits = append(s.Limits, agent.LimitStatus{Link: j.Link, Promise: j.Promise, Rung: "police", Why: "the policy asks for it", Lacks: []string{"this"}})
			}
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on eth0
  wanted  ingress at most 20Mbit
  got     read back: at most 20Mbit (512KiB at once) by police; 39.8Mbit over 500ms, 4 packets
          dropped
  next    weir status, once more: what counts is 500ms in which packets come or wait

workload  link  promise                 verdict  packets      sent  evidence
(all)     eth0  egress at most 20Mbit   kept          12  3.38 KiB  nothing passes
(all)     eth0  ingress at most 20Mbit  broken            3.38 KiB  see above
  limits of eth0 itself by police: the policy asks for it
    not promised: this
`},
		{"limits in classes", 100, func(s *agent.Status) {
			s.Links, s.Unclaimed, s.OK = nil, nil, false
			limit := func(workload string, verdict plan.Verdict, evidence string) plan.Judgement {
				return plan.Judgement{Workload: workload, Link: "eth0", Promise: plan.PromiseEgress, Priority: policy.Unset, Max: 2e7, Verdict: verdict, Evidence: "read back: at most 20Mbit by htb; " + evidence}
			}
			s.Promises = []plan.Judgement{
				limit("idle", plan.Kept, "nothing of it waits"), limit("busy", plan.Kept, "3 packets dropped; 20.1Mbit over 500ms, and more waits"),
				limit("late", plan.Broken, "39.8Mbit over 500ms, and more waits"),
			}
			for _, workload := range []string{"busy", "idle", "late"} {
				s.Limits = append(s.Limits, agent.LimitStatus{Workload: workload, Link: "eth0", Promise: plan.PromiseEgress, Rung: "htb", Why: "the policy asks for it", Lacks: []string{"this", "that"}})
			}
			s.Limits = append(s.Limits, agent.LimitStatus{Workload: "late", Link: "eth1", Promise: plan.PromiseEgress, Rung: "pace", Why: "the best there is"},
				agent.LimitStatus{Workload: "idle", Link: plan.EveryLink, Promise: plan.PromiseIngress, Rung: "edt", Why: "the policy asks for it"},
				agent.LimitStatus{Workload: "new", Link: plan.EveryLink, Promise: plan.PromiseIngress, Rung: "pace", Why: "the best there is"})
			s.Weights = []plan.Weighing{{Workload: "late", Limit: "the limit of tenant", Weight: 3, Last: 37_216_000}}
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on eth0
  wanted  late at most 20Mbit
  got     read back: at most 20Mbit by htb; 39.8Mbit over 500ms, and more waits
  next    weir status, once more: what counts is 500ms in which packets come or wait

workload  link  promise         verdict  packets  sent  evidence
idle      eth0  at most 20Mbit  kept           0   0 B  nothing of it waits
busy      eth0  at most 20Mbit  kept           0   0 B  3 packets dropped; 20.1Mbit over 500ms
late      eth0  at most 20Mbit  broken         0   0 B  see above
  limits of busy, idle, late by htb: the policy asks for it
    not promised: this; that
  limits of late, new by pace: the best there is
  limits of what idle receives by edt: the policy asks for it
  late: weight 3 in the limit of tenant: 37.2Mbit in the last 5 s
`},
		{"a limit", 90, func(s *agent.Status) {
			s.Links, s.Unclaimed = nil, nil
			s.Promises[1] = limited(plan.Kept, "read back: at most 50Mbit; 49.8Mbit in the last 5 s, 50.1Mbit in the busiest; 12 packets dropped, 3 marked")
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

workload  link  promise         verdict  packets      sent  evidence
ssh       eth0  priority 15     kept          88  8.91 KiB  read back: priority 15
backup    *     at most 50Mbit  kept       5,000  6.68 MiB  49.8Mbit in the last 5 s
`},
		{"limits of all kinds", 100, func(s *agent.Status) {
			s.Verdict, s.Links, s.Unclaimed = "kept: all 4 promises", nil, nil
			const measured = "; 9.9Mbit in the last 5 s, 10Mbit in the busiest; no packet dropped or marked"
			here := limited(plan.Kept, "read back: at most 10Mbit"+measured)
			here.Link, here.Max = "eth1", 1e7
			out, in := here, here
			out.Workload, out.Max, out.Traffic = "", 9e8, plan.Traffic{Packets: 7000, Bytes: 8e6}
			in.Workload, in.Max, in.Promise, in.Traffic = "", 1e10, plan.PromiseIngress, plan.Traffic{Bytes: 3e6}
			s.Promises = []plan.Judgement{limited(plan.Kept, "read back: at most 50Mbit"+measured), here, out, in}
		}, `
kept: all 4 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

workload  link  promise                 verdict  packets      sent  evidence
backup    *     at most 50Mbit          kept       5,000  6.68 MiB  9.9Mbit in the last 5 s
backup    eth1  at most 10Mbit          kept       5,000  6.68 MiB  9.9Mbit in the last 5 s
(all)     eth1  egress at most 900Mbit  kept       7,000  7.63 MiB  9.9Mbit in the last 5 s
(all)     eth1  ingress at most 10Gbit  kept              2.86 MiB  9.9Mbit in the last 5 s
`},
		{"a link's own limit is broken", 80, func(s *agent.Status) {
			s.OK, s.Verdict = false, "broken: 1 of 1 promises, 1 objects differ from the policy"
			s.Links, s.Unclaimed = nil, nil
			j := limited(plan.Broken, "its program at ingress does not run")
			j.Workload, j.Link, j.Promise, j.Traffic = "", "eth1", plan.PromiseIngress, plan.Traffic{}
			s.Promises = []plan.Judgement{j}
			s.Differences = []plan.Difference{{Op: plan.Change, Object: "link eth1", Detail: "its program at ingress does not run"}}
		}, `
broken: 1 of 1 promises, 1 objects differ from the policy
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on eth1
  wanted  ingress at most 50Mbit
  got     its program at ingress does not run
  next    weir apply policy.yaml

workload  link  promise                 verdict  sent  evidence
(all)     eth1  ingress at most 50Mbit  broken    0 B  see above
`},
		{"what sockets receive", 100, func(s *agent.Status) {
			s.Links, s.Unclaimed = nil, nil
			s.Promises[1] = limited(plan.Kept, "read back: at most 50Mbit; 49.8Mbit in the last 5 s, 50.1Mbit in the busiest; 12 packets dropped, 3 marked")
			s.Promises[1].Promise, s.Promises[1].Traffic.Packets = plan.PromiseIngress, 0
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

workload  link     promise                 verdict  packets      sent  evidence
ssh       eth0     priority 15             kept          88  8.91 KiB  read back: priority 15
backup    sockets  ingress at most 50Mbit  kept              6.68 MiB  49.8Mbit in the last 5 s
`},
		{"what sockets receive is not held", 80, func(s *agent.Status) {
			s.OK, s.Verdict = false, "broken: 1 of 1 promises, 1 objects differ from the policy"
			s.Links, s.Unclaimed = nil, nil
			j := limited(plan.Broken, "sockets: their program at ingress does not run")
			j.Promise, j.Traffic = plan.PromiseIngress, plan.Traffic{}
			s.Promises = []plan.Judgement{j}
			s.Differences = []plan.Difference{{Op: plan.Change, Object: "sockets", Detail: "their program at ingress does not run"}}
		}, `
broken: 1 of 1 promises, 1 objects differ from the policy
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on sockets
  wanted  backup ingress at most 50Mbit
  got     sockets: their program at ingress does not run
  next    weir apply policy.yaml

workload  link     promise                 verdict  sent  evidence
backup    sockets  ingress at most 50Mbit  broken    0 B  see above
`},
		{"a limit that is exceeded", 80, func(s *agent.Status) {
			s.OK, s.Verdict = false, "broken: 1 of 1 promises, 0 objects differ from the policy"
			s.Links, s.Unclaimed = nil, nil
			s.Promises = []plan.Judgement{limited(plan.Broken, "read back: at most 50Mbit; 62.3Mbit in the last 5 s")}
		}, `
broken: 1 of 1 promises, 0 objects differ from the policy
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on every link
  wanted  backup at most 50Mbit
  got     read back: at most 50Mbit; 62.3Mbit in the last 5 s
  next    weir status, once more: what counts is the last whole 5 s

workload  link  promise         verdict  packets      sent  evidence
backup    *     at most 50Mbit  broken     5,000  6.68 MiB  see above
`},
		{"a limit where a link is broken", 80, func(s *agent.Status) {
			s.OK, s.Verdict = false, "broken: 1 of 1 promises, 1 objects differ from the policy"
			s.Links, s.Unclaimed = nil, nil
			s.Promises = []plan.Judgement{limited(plan.Broken, "link eth0: its programs do not run")}
			s.Differences = []plan.Difference{{Op: plan.Change, Object: "link eth0", Detail: "its programs do not run"}}
		}, `
broken: 1 of 1 promises, 1 objects differ from the policy
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on every link
  wanted  backup at most 50Mbit
  got     link eth0: its programs do not run
  next    weir apply policy.yaml

workload  link  promise         verdict  packets      sent  evidence
backup    *     at most 50Mbit  broken     5,000  6.68 MiB  see above
`},
		{"pending", 80, func(s *agent.Status) {
			s.Links, s.Promises, s.Unclaimed = nil, nil, nil
			s.Pending = &state.Pending{Deadline: noon.Add(75 * time.Second)}
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

Taken back at 12:01:15, in 75 s, unless it is confirmed:
  weir confirm     keep it
  weir rollback    take it back now
`},
		{"half a change", 80, func(s *agent.Status) {
			s.OK, s.Verdict = false, "unfinished: apply was broken off at step 3 of 9 (follow new sockets)"
			s.Policy, s.Links, s.Promises, s.Unclaimed = "", nil, nil, nil
			s.Unfinished = &state.Journal{}
		}, `
unfinished: apply was broken off at step 3 of 9 (follow new sockets)
  weir apply FILE finishes it, weir reset takes it back
`},
		{"half a change, on trial", 80, func(s *agent.Status) {
			s.OK, s.Verdict = false, "unfinished: apply was broken off at step 3 of 9 (follow new sockets)"
			s.Policy, s.Links, s.Promises, s.Unclaimed = "", nil, nil, nil
			s.Unfinished, s.Pending = &state.Journal{}, &state.Pending{Deadline: noon.Add(75 * time.Second)}
		}, `
unfinished: apply was broken off at step 3 of 9 (follow new sockets)

Taken back at 12:01:15, in 75 s:
  weir rollback    take it back now
`},
		{"guard is dead", 80, func(s *agent.Status) {
			s.Links, s.Promises, s.Unclaimed = nil, nil, nil
			s.Pending = &state.Pending{Deadline: noon.Add(-5 * time.Minute)}
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

unconfirmed: it should have been taken back 5 min ago, and was not
  weir confirm     keep it
  weir rollback    take it back now
`},
		{"sets", 80, func(s *agent.Status) {
			s.Links, s.Unclaimed = nil, nil
			s.Promises = []plan.Judgement{
				{Workload: "set unit: nginx.service", Link: "eth0", Promise: plan.PromisePriority, Priority: 3, Verdict: plan.Kept},
				{Workload: "pid 731", Link: plan.EveryLink, Promise: plan.PromiseEgress, Priority: policy.Unset, Max: 1e7, Verdict: plan.Kept,
					Evidence: "read back: at most 10Mbit; 9.9Mbit of late, 10Mbit at most; no packet dropped or marked"},
			}
			s.Sets = []agent.SetStatus{
				{Name: "pid 730", Terms: "priority 4", Traffic: map[string]plan.Traffic{"eth0": {Packets: 3, Bytes: 4096}, "eth1": {Packets: 4, Bytes: 4096}}},
				{Name: "pid 731", Terms: "at most 10Mbit", Max: 1e7, Alive: true},
				{Name: "set unit: nginx.service", Terms: "priority {eth0: 3}", Alive: true},
			}
			s.Rollback = &state.Rollback{When: noon, Reason: "weir rollback was called", Proved: true}
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)
rolled back at 2026-05-04 12:00:00
  weir rollback was called; and everything read back is as before

set                  promise             state                packets      sent
pid 730              priority 4          its process is gone        7  8.00 KiB
pid 731              at most 10Mbit      in force                   0       0 B
unit: nginx.service  priority {eth0: 3}  in force                   0       0 B
`},
		{"sets with limits both ways", 150, func(s *agent.Status) {
			s.Links, s.Unclaimed = nil, nil
			const rest = "; no packet dropped or marked"
			out := limited(plan.Kept, "read back: at most 10Mbit; 9.9Mbit in the last 5 s, 10Mbit in the busiest"+rest)
			in := limited(plan.Kept, "read back: at most 20Mbit; 19Mbit in the last 5 s, 20Mbit in the busiest"+rest)
			out.Workload, in.Workload, in.Promise = "pid 731", "pid 731", plan.PromiseIngress
			alone := in
			alone.Workload, alone.Verdict = "pid 732", plan.Broken
			s.Promises = []plan.Judgement{out, in, alone}
			s.Sets = []agent.SetStatus{
				{Name: "pid 731", Terms: "at most 10Mbit, ingress at most 20Mbit", Max: 1e7, MaxIngress: 2e7, Alive: true},
				{Name: "pid 732", Terms: "ingress at most 20Mbit", MaxIngress: 2e7, Alive: true},
			}
		}, `
kept: all 2 promises
policy.yaml, applied 2026-05-04 09:00:00 (3 h ago)

broken on sockets
  wanted  pid 732 ingress at most 50Mbit
  got     read back: at most 20Mbit; 19Mbit in the last 5 s, 20Mbit in the busiest; no packet dropped or marked
  next    weir status, once more: what counts is the last whole 5 s

set      promise                                 state              packets  sent  evidence
pid 731  at most 10Mbit, ingress at most 20Mbit  in force                 0   0 B  9.9Mbit in the last 5 s, ingress: 19Mbit in the last 5 s
pid 732  ingress at most 20Mbit                  broken, see above        0   0 B  ingress: see above
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sample()
			tt.edit(s)
			v := statusView{width: tt.width, now: noon}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), v.render(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Colours change no word and no width.
func TestStatusViewInColour(t *testing.T) {
	plain, coloured := statusView{width: 80, now: noon}, statusView{painter: painter{true}, width: 80, now: noon}
	text := coloured.render(sample())
	for _, code := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[1;31m", "\x1b[1;33m"} {
		text = strings.ReplaceAll(text, code, "")
	}
	if diff := cmp.Diff(plain.render(sample()), text); diff != "" {
		t.Error(diff)
	}
}

func TestTable(t *testing.T) {
	table := table{columns: []column{{title: "name"}, {title: "n", right: true, rank: 1}, {title: "note", rank: 2}, {title: "empty", rank: 1}}}
	table.add(plainCells("a-very-long-name-of-a-workload", "1,234", "something to say", "")...)
	table.add(plainCells("b", "5", "", "")...)
	for width, want := range map[int]string{
		80: "name                            n      note\na-very-long-name-of-a-workload  1,234  something to say\nb                                   5\n",
		40: "name                                n\na-very-long-name-of-a-workload  1,234\nb                                   5\n",
		20: "name\na-very-long-name-of…\nb\n",
	} {
		var b strings.Builder
		table.render(&b, painter{}, "", width)
		if width == 80 {
			want = strings.Replace(want, "  n      note", "      n  note", 1)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%d columns: %s", width, diff)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns: a line of %d", width, n)
			}
		}
	}
}

func TestAmount(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 10220: "9.98 KiB", 10240: "10.0 KiB", 102400: "100 KiB",
		1048064: "1.00 MiB", 1 << 30: "1.00 GiB", 1<<64 - 1: "16.0 EiB",
	} {
		if got := amount(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1204511: "1,204,511"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
