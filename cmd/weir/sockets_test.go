package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/policy"
)

// socketReport is two workloads, and what nobody claims.
func socketReport() *agent.SocketReport {
	use := func(pid uint32, name, peer string, m plan.SocketMemory) agent.SocketUse {
		return agent.SocketUse{
			Protocol: "tcp", State: "established", Local: "10.0.0.1:40312", Peer: peer, Accepted: true, Inode: 1,
			Processes: []agent.SocketProcess{{PID: pid, Name: name}}, Held: m.Held(), SocketMemory: m, ReceiveBuffer: 131072, SendBuffer: 4194304,
		}
	}
	r := &agent.SocketReport{TCPMemory: plan.TCPMemory{Used: 34 << 20, Low: 96 << 20, Pressure: 143 << 20, Max: 190 << 20}}
	for _, h := range []agent.SocketHolder{
		{Workload: "backup", Count: 3, Sockets: []agent.SocketUse{
			use(730, "rsync", "192.0.2.7:873", plan.SocketMemory{Receive: 0, Send: 4187008, Reserved: 2176}),
			use(731, "rsync", "192.0.2.8:873", plan.SocketMemory{Receive: 4352, Send: 0, Reserved: 3840}),
		}},
		{Workload: "", Count: 130, Sockets: []agent.SocketUse{}, SocketMemory: plan.SocketMemory{Receive: 1 << 20}},
		{Workload: "web", Count: 1, Sockets: []agent.SocketUse{use(800, "nginx", "[2001:db8::17]:51034", plan.SocketMemory{Receive: 115648})}},
	} {
		for _, s := range h.Sockets {
			h.SocketMemory = h.Plus(s.SocketMemory)
		}
		h.Held = h.SocketMemory.Held()
		r.Holders = append(r.Holders, h)
	}
	web := &r.Holders[2].Sockets[0]
	web.Accepted, web.Processes = false, append(web.Processes, agent.SocketProcess{PID: 801, Name: "nginx"}, agent.SocketProcess{PID: 802, Name: "nginx"})
	return r
}

// bounded gives the first workload a bound.
func bounded(r *agent.SocketReport) {
	r.Holders[0].Memory = &plan.MemoryJudged{
		Bound: policy.TCPMemory{Soft: 4 << 20, Max: 8 << 20},
		Pool:  plan.Pool{May: 6 << 20, Most: 8 << 20, Sockets: 3, Throttled: 1204, Squeezed: 3},
	}
}

func TestSocketsView(t *testing.T) {
	for _, tt := range []struct {
		name  string
		width int
		edit  func(*agent.SocketReport)
		want  string
	}{
		{"wide", 150, func(*agent.SocketReport) {}, `
workload   sockets      held  received   to send
backup           3  4.00 MiB  4.25 KiB  3.99 MiB
unclaimed      130  1.00 MiB  1.00 MiB       0 B
web              1   113 KiB   113 KiB       0 B

workload  state         local           peer                  process                   held  received   rcvbuf   to send    sndbuf
backup    established   10.0.0.1:40312  192.0.2.7:873         730 rsync             4.00 MiB       0 B  128 KiB  3.99 MiB  4.00 MiB
web       not accepted  10.0.0.1:40312  [2001:db8::17]:51034  800 nginx and 2 more   113 KiB   113 KiB  128 KiB       0 B  4.00 MiB
backup    established   10.0.0.1:40312  192.0.2.8:873         731 rsync             8.00 KiB  4.25 KiB  128 KiB       0 B  4.00 MiB
not shown: 130 sockets that no workload claims, 1 empty socket (--all)

TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)
`},
		{"80", 80, func(*agent.SocketReport) {}, `
workload   sockets      held  received   to send
backup           3  4.00 MiB  4.25 KiB  3.99 MiB
unclaimed      130  1.00 MiB  1.00 MiB       0 B
web              1   113 KiB   113 KiB       0 B

workload  peer                  process                   held   to send
backup    192.0.2.7:873         730 rsync             4.00 MiB  3.99 MiB
web       [2001:db8::17]:51034  800 nginx and 2 more   113 KiB       0 B
backup    192.0.2.8:873         731 rsync             8.00 KiB       0 B
not shown: 130 sockets that no workload claims, 1 empty socket (--all)

TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)
`},
		{"narrow", 40, func(*agent.SocketReport) {}, `
workload   sockets      held   to send
backup           3  4.00 MiB  3.99 MiB
unclaimed      130  1.00 MiB       0 B
web              1   113 KiB       0 B

workload  process                   held
backup    730 rsync             4.00 MiB
web       800 nginx and 2 more   113 KiB
backup    731 rsync             8.00 KiB
not shown: 130 sockets that no workload
claims, 1 empty socket (--all)

TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)
`},
		{"one workload, under pressure", 80, func(r *agent.SocketReport) {
			r.Holders, r.TCPMemory.Used = r.Holders[:1], 150<<20
			r.Warnings = []string{"not all processes could be looked at: read sockets of process 7: permission denied"}
		}, `
workload  sockets      held  received   to send
backup          3  4.00 MiB  4.25 KiB  3.99 MiB

state        peer           process        held  received   to send
established  192.0.2.7:873  730 rsync  4.00 MiB       0 B  3.99 MiB
established  192.0.2.8:873  731 rsync  8.00 KiB  4.25 KiB       0 B
not shown: 1 empty socket (--all)

TCP memory: 150 MiB of 190 MiB (pressure from 143 MiB)
warning: not all processes could be looked at: read sockets of process 7:
         permission denied
`},
		{"bounded", 120, func(r *agent.SocketReport) {
			bounded(r)
			r.Holders[0].Sockets[0].Bound = &plan.Holding{Counts: 5 << 20, Capped: true}
			r.Holders[0].Sockets[1].Bound = &plan.Holding{Counts: 12 << 10, Capped: true, Squeezed: true}
			r.Holders[2].Sockets[0].Bound = &plan.Holding{Counts: 6 << 20}
		}, `
workload   sockets      held  received   to send
backup           3  4.00 MiB  4.25 KiB  3.99 MiB
unclaimed      130  1.00 MiB  1.00 MiB       0 B
web              1   113 KiB   113 KiB       0 B

bounded    in use   highest      soft       max  full  throttled  squeezed  refused
backup   6.00 MiB  8.00 MiB  4.00 MiB  8.00 MiB  75 %      1,204         3        0

workload  state         peer                  process                   held  received   to send  buffers
backup    established   192.0.2.7:873         730 rsync             4.00 MiB       0 B  3.99 MiB  capped
web       not accepted  [2001:db8::17]:51034  800 nginx and 2 more   113 KiB   113 KiB       0 B  its own
backup    established   192.0.2.8:873         731 rsync             8.00 KiB  4.25 KiB       0 B  squeezed
not shown: 130 sockets that no workload claims, 1 empty socket (--all)

TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)
`},
		{"bounded, narrow", 40, bounded, `
workload   sockets      held   to send
backup           3  4.00 MiB  3.99 MiB
unclaimed      130  1.00 MiB       0 B
web              1   113 KiB       0 B

bounded    in use       max  full
backup   6.00 MiB  8.00 MiB  75 %

workload  process                   held
backup    730 rsync             4.00 MiB
web       800 nginx and 2 more   113 KiB
backup    731 rsync             8.00 KiB
not shown: 130 sockets that no workload
claims, 1 empty socket (--all)

TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)
`},
		{"by cgroups, limits unknown", 80, func(r *agent.SocketReport) {
			r.Holders[0].Workload, r.Holders[0].Cgroup = "", "/system.slice/backup.service"
			r.Holders, r.TCPMemory = r.Holders[:1], plan.TCPMemory{Used: 812}
		}, `
workload   cgroup                        sockets      held  received   to send
unclaimed  /system.slice/backup.service        3  4.00 MiB  4.25 KiB  3.99 MiB

state        peer           process        held  received   to send
established  192.0.2.7:873  730 rsync  4.00 MiB       0 B  3.99 MiB
established  192.0.2.8:873  731 rsync  8.00 KiB  4.25 KiB       0 B
not shown: 1 empty socket (--all)

TCP memory: 812 B; the limits are seen in the host's own network namespace
`},
		{"none", 80, func(r *agent.SocketReport) { r.Holders = nil }, `
no TCP sockets

TCP memory: 34.0 MiB of 190 MiB (pressure from 143 MiB)
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := socketReport()
			tt.edit(r)
			v := socketsView{width: tt.width}
			if diff := cmp.Diff(strings.TrimPrefix(tt.want, "\n"), v.render(r)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
