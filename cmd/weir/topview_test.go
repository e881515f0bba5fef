package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/testutil"
)

// busy is a host with two links and three workloads.
func busy() *agent.Top {
	speed := func(bits, packets float64) plan.Speed { return plan.Speed{Bits: bits, Packets: packets} }
	on := func(link string, s plan.Speed) plan.RowOnLink { return plan.RowOnLink{Link: link, Sent: s} }
	received := speed(3.1e6, 0)
	return &agent.Top{
		SchemaVersion: schemaVersion, Verdict: "kept: all 7 promises", OK: true,
		Speeds: plan.Speeds{
			Seconds: 2, TCPMemory: plan.TCPMemory{Used: 34 << 20, Low: 96 << 20, Pressure: 143 << 20, Max: 190 << 20},
			Links: []plan.LinkSpeed{
				{Link: "eth0", Rate: 100e6, Sent: speed(61.4e6, 5210), Received: speed(3.2e6, 4800), Dropped: 12},
				{Link: "eth1", Sent: speed(8000, 1), Received: speed(0, 0)},
			},
			Rows: []plan.Row{
				{
					Workload: "backup", Sent: speed(48.9e6, 4100), Links: []plan.RowOnLink{on("eth0", speed(48.9e6, 4100))},
					Limit: &plan.LimitUse{Terms: "egress at most 50Mbit", Percent: 97.8}, Dropped: 3.5, Sockets: 3, Holds: 4 << 20,
					Memory: &plan.MemoryJudged{Bound: policy.TCPMemory{Soft: 4 << 20, Max: 8 << 20}, Pool: plan.Pool{May: 6 << 20, Most: 8 << 20, Throttled: 1204, Refused: 3}},
				},
				{Workload: "ssh", Sent: speed(0, 0), Links: []plan.RowOnLink{}, Sockets: 2},
				{
					Workload: "web", Sent: speed(11.2e6, 1004), Links: []plan.RowOnLink{on("eth0", speed(11.192e6, 1003)), on("eth1", speed(8000, 1))}, Received: &received,
					Limit: &plan.LimitUse{Terms: "ingress at most 20Mbit", Percent: 15.5}, Marked: 0.5, Sockets: 1204, Holds: 115648,
				},
				{Workload: plan.RowUnclaimed, Sent: speed(1.5e6, 120), Links: []plan.RowOnLink{on("eth0", speed(1.5e6, 120))}},
				{Workload: plan.RowUnclassified, Links: []plan.RowOnLink{}},
				{Workload: plan.RowUnattributed, Sent: speed(-0.2e6, -14), Links: []plan.RowOnLink{on("eth0", speed(-0.2e6, -14))}},
			},
		},
	}
}

func TestTopView(t *testing.T) {
	for _, tt := range []struct {
		name          string
		width, height int
		view          topView
		want          string
	}{
		{"a snapshot, wide", 150, 0, topView{sort: "sent"}, `
kept: all 7 promises
eth0: 61.4 Mbit/s out (61 % of 100Mbit), 3.20 Mbit/s in, 12 dropped/s
eth1: 8.00 Kbit/s out, 0 bit/s in
TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)

workload              sent  packets/s     received  limit  dropped/s  marked/s     holds  bound   highest  throttled  refused  sockets
backup         48.9 Mbit/s      4,100                98 %        3.5            4.00 MiB   75 %  8.00 MiB      1,204        3        3
web            11.2 Mbit/s      1,004  3.10 Mbit/s   16 %                  0.5   113 KiB                                         1,204
ssh                0 bit/s          0                                                                                                2
(unclaimed)    1.50 Mbit/s        120
(not counted)  -200 Kbit/s        -14
`},
		{"by limits, with links", 80, 0, topView{sort: "limit", links: true}, `
kept: all 7 promises
eth0: 61.4 Mbit/s out (61 % of 100Mbit), 3.20 Mbit/s in, 12 dropped/s
eth1: 8.00 Kbit/s out, 0 bit/s in
TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)

workload       link         sent     received  limit  dropped/s     holds  bound
backup               48.9 Mbit/s                98 %        3.5  4.00 MiB   75 %
               eth0  48.9 Mbit/s
web                  11.2 Mbit/s  3.10 Mbit/s   16 %              113 KiB
               eth0  11.2 Mbit/s
               eth1  8.00 Kbit/s
ssh                      0 bit/s
(unclaimed)          1.50 Mbit/s
               eth0  1.50 Mbit/s
(not counted)        -200 Kbit/s
               eth0  -200 Kbit/s
`},
		{"a screen", 80, 24, topView{sort: "name", keys: true}, `
kept: all 7 promises
eth0: 61.4 Mbit/s out (61 % of 100Mbit), 3.20 Mbit/s in, 12 dropped/s
eth1: 8.00 Kbit/s out, 0 bit/s in
TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)

workload              sent     received  limit  dropped/s     holds  bound
backup         48.9 Mbit/s                98 %        3.5  4.00 MiB   75 %
ssh                0 bit/s
web            11.2 Mbit/s  3.10 Mbit/s   16 %              113 KiB
(unclaimed)    1.50 Mbit/s
(not counted)  -200 Kbit/s

q quit   s sort: name   l links
`},
		{"the least", 40, 10, topView{sort: "sent", keys: true}, `
kept: all 7 promises
eth0: 61.4 Mbit/s out (61 % of 100Mbit)…
eth1: 8.00 Kbit/s out, 0 bit/s in
TCP memory: 34.0 MiB of 190 MiB (pressu…
workload              sent  limit  bound
backup         48.9 Mbit/s   98 %   75 %
… 2 more
(unclaimed)    1.50 Mbit/s
(not counted)  -200 Kbit/s
q quit   s sort: sent   l links
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), tt.view.render(busy(), tt.width, tt.height)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// On a screen of any size from 40x10 on no line is too long, there are not too many, and the
// rows of nobody, which make the sum right, are there.
func TestTopViewFits(t *testing.T) {
	top := busy()
	for i := range 40 {
		top.Rows = append([]plan.Row{{Workload: fmt.Sprintf("a-workload-with-a-long-name-%d", i), Sockets: i}}, top.Rows...)
		top.Links = append(top.Links, plan.LinkSpeed{Link: fmt.Sprintf("veth%d", i), Dropped: 1e6})
	}
	top.Verdict = strings.Repeat("broken:of:it,", 9)
	for width := 40; width < 200; width += 3 {
		for height := 10; height < 70; height++ {
			for _, v := range []topView{{sort: "sent", keys: true}, {sort: "limit", keys: true, links: true}} {
				text := v.render(top, width, height)
				lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
				if len(lines) > height || !strings.Contains(text, "(unclaimed)") || !strings.Contains(text, "(not counted)") && !v.links {
					t.Fatalf("%d lines at %dx%d:\n%s", len(lines), width, height, text)
				}
				for _, line := range lines {
					if utf8.RuneCountInString(line) > width || strings.HasSuffix(line, " ") {
						t.Fatalf("%d characters at %dx%d: %q", utf8.RuneCountInString(line), width, height, line)
					}
				}
			}
		}
	}
}

func TestTopKeys(t *testing.T) {
	v := topView{sort: "sent"}
	for _, key := range []string{"s", "s", "right", "left", "S", "l", "x"} {
		v.key(key)
	}
	if v.sort != "received" || !v.links {
		t.Errorf("%+v", v)
	}
	v.sort = "sent"
	if v.key("left"); v.sort != "name" {
		t.Errorf("left of the first is %s", v.sort)
	}
}

func TestBits(t *testing.T) {
	for b, want := range map[float64]string{
		0: "0 bit/s", 999.4: "999 bit/s", 999.6: "1.00 Kbit/s", 12345: "12.3 Kbit/s", 123456: "123 Kbit/s", 99.96e6: "100 Mbit/s", 2.5e9: "2.50 Gbit/s",
		-0.2: "0 bit/s", -1500: "-1.50 Kbit/s", 4e12: "4.00 Tbit/s", 4e15: "4000 Tbit/s",
	} {
		if got := bits(b); got != want {
			t.Errorf("%v is %q, want %q", b, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 0.04: "0", -0.04: "0", 0.5: "0.5", 9.96: "10", 1204.4: "1,204", -14.2: "-14"} {
		if got := perSecond(n); got != want {
			t.Errorf("%v is %q, want %q", n, got, want)
		}
	}
}

// On a terminal of the least size it watches until it is ended, and gives the terminal back.
func TestTopOnATerminal(t *testing.T) {
	h := newHost(t, "eth0")
	if code, out := h.weir(t, "apply", writePolicy(t, twoWorkloads)); code != 0 {
		t.Fatalf("apply: exit code %d\n%s", code, out)
	}
	for _, tt := range []struct {
		name string
		end  func(*testutil.Terminal, *exec.Cmd)
		code int
	}{
		{"q", func(term *testutil.Terminal, _ *exec.Cmd) { term.Type(t, "q") }, 0},
		{"SIGTERM", func(_ *testutil.Terminal, cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }, 143},
		{"its policy goes", func(*testutil.Terminal, *exec.Cmd) { h.weir(t, "reset") }, exitFailed},
	} {
		term := testutil.NewTerminal(t, 40, 10)
		before := term.Modes(t)
		cmd := h.command(t, "top", "--interval", "100ms", "--color", "never")
		cmd.Env = append(cmd.Env, "TERM=xterm")
		wait := term.Start(t, cmd)
		term.Until(t, "kept: all 2 promises")
		term.Until(t, "\r\nssh  ")
		term.Until(t, "\r\n(unclaimed)  ")
		term.Until(t, "s sort: sent")
		term.Type(t, "s")
		term.Until(t, "s sort: received")
		term.Resize(t, 80, 24)
		term.Until(t, "bit/s in\x1b[0m\x1b[K\r\r\nTCP memory") // whole
		tt.end(term, cmd)
		term.Until(t, "\x1b[?1049l")
		if code := wait(); code != tt.code {
			t.Errorf("%s: exit code %d, want %d: %q", tt.name, code, tt.code, term.Written())
		}
		if term.Modes(t) != before {
			t.Errorf("%s: the modes are others", tt.name)
		}
	}
}
