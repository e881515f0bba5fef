package observe

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/testutil"
)

// startMeter starts a meter for the sockets of a cgroup, until the end of the test. It runs all the time,
// whatever it costs: TestGate is of one that does not.
func startMeter(t *testing.T, cgroup string) *Meter {
	t.Helper()
	testutil.Needs(t, "BTF")
	m, err := Start(Options{Cgroup: cgroup, Always: true, Hertz: 997})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := m.NotSampling(); err != nil {
		t.Fatalf("not sampling: %v", err)
	}
	return m
}

// during is what is counted while fn runs.
func during(t *testing.T, m *Meter, fn func()) *cost.Reading {
	t.Helper()
	before := read(t, m)
	fn()
	return read(t, m).Since(before)
}

func read(t *testing.T, m *Meter) *cost.Reading {
	t.Helper()
	r, err := m.Read()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// by sums up the rows that are of something.
func by(r *cost.Reading, of func(cost.Row) bool) (times cost.Times, packets uint64) {
	for _, row := range r.Rows {
		if of(row) {
			times = times.Plus(row.Times)
			packets += row.Packets
		}
	}
	return times, packets
}

func cgroupID(t *testing.T, dir string) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

// near fails where got is further from want than a part of it.
func near(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	t.Logf("%s: %.4g, expected %.4g", what, got, want)
	if math.Abs(got-want) > part*want {
		t.Errorf("%s: %.4g, want %.4g ± %.0f %%", what, got, want, 100*part)
	}
}

// Who gets three of four packets pays for three quarters of the time, which is that of who sends:
// loopback hands packets over in the sender's name. Each packet of four has a socket of its own, so that all wake up who
// receives them as often. Of a second some 1,500 softirqs are drawn to be timed, which tell the ratio to
// 6 %, and one that is kept from its CPU counts for hundreds: the median of ten seconds is within 2.5 %.
func TestOwners(t *testing.T) {
	top := testutil.Cgroup2(t)
	testutil.Netns(t)
	addresses := []string{"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003", "127.0.0.1:7004"}
	cgroups := map[string]string{}
	for name, its := range map[string][]string{"three": addresses[:3], "one": addresses[3:]} {
		cgroups[name] = filepath.Join(top, name)
		if err := unix.Mkdir(cgroups[name], 0o755); err != nil {
			t.Fatal(err)
		}
		for _, a := range its {
			startSink(t, cgroups[name], a)
		}
	}
	m := startMeter(t, top)
	s := newSource(t)
	owned := func(r *cost.Reading, name string) (cost.Times, uint64) {
		id := cgroupID(t, cgroups[name])
		return by(r, func(row cost.Row) bool { return row.Owner == cost.Owner{Kind: cost.Cgroup, ID: id} })
	}
	var ratios []float64
	r := during(t, m, func() {
		for range 10 {
			second := during(t, m, func() { s.send(time.Second, addresses...) })
			three, _ := owned(second, "three")
			one, _ := owned(second, "one")
			ratios = append(ratios, three[cost.RX].Seconds()/one[cost.RX].Seconds())
		}
	})
	sent := s.sent[addresses[3]] // and as many to each of the others
	slices.Sort(ratios)
	t.Logf("time of three to one, in each second: %.3g", ratios)
	near(t, "time of three to one", (ratios[4]+ratios[5])/2, 3, 0.1)
	three, threePackets := owned(r, "three")
	one, onePackets := owned(r, "one")
	near(t, "packets of three", float64(threePackets), float64(3*sent), 0.1)
	near(t, "packets of one", float64(onePackets), float64(sent), 0.1)
	if three[cost.Receive] == 0 || one[cost.Receive] == 0 {
		t.Error("no time in recvmsg, though all is received")
	}

	self := uint32(unix.Getpid())
	mine, _ := by(r, func(row cost.Row) bool { return row.Victim.PID == self })
	if mine[cost.Send] == 0 {
		t.Error("no time in sendmsg, though all is sent from here")
	}
	if all := three.Plus(one); mine[cost.RX] < all[cost.RX]/2 {
		t.Errorf("%s of net_rx were in the name of who sends, of %s", mine[cost.RX], all[cost.RX])
	}
}

// stolen is how long the host of a virtual machine has kept its CPUs, where it tells.
func stolen(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := strings.Cut(string(text), "\n")
	ticks, err := strconv.ParseUint(append(strings.Fields(all), make([]string, 9)...)[8], 10, 64)
	if err != nil {
		t.Fatalf("%q does not say what was stolen: %v", all, err)
	}
	return time.Duration(ticks) * tick
}

// sendCounted has readings taken while all is sent, with what /proc/softirqs counts in a second meanwhile, of each CPU.
func sendCounted(t *testing.T, m *Meter, s *source, to string) (r *cost.Reading, perSecond map[int]float64) {
	t.Helper()
	sending := make(chan struct{})
	go func() {
		s.send(4*time.Second, to)
		close(sending)
	}()
	time.Sleep(200 * time.Millisecond)
	perSecond = map[int]float64{}
	r = during(t, m, func() {
		began := time.Now()
		before, err := softirqRuns()
		time.Sleep(3 * time.Second)
		after, failed := softirqRuns()
		counting := time.Since(began)
		if err := errors.Join(err, failed); err != nil {
			t.Error(err)
		}
		for cpu, runs := range after {
			perSecond[cpu] = float64(runs[0]+runs[1]-before[cpu][0]-before[cpu][1]) / counting.Seconds()
		}
	})
	<-sending
	return r, perSecond
}

// The matrix sums up to what each CPU did, and what is measured to what samples say.
func TestSums(t *testing.T) {
	top := testutil.Cgroup2(t)
	testutil.Netns(t)
	startSink(t, top, "127.0.0.1:7003")
	m := startMeter(t, top)
	s := newSource(t)
	// It goes on while readings are taken, so what counts is how much there is of all in a second. Where a CPU is kept
	// from this machine its clock goes on, and its samples do not, so that the two need not agree.
	var r *cost.Reading
	var perSecond map[int]float64
	for range 4 {
		before := stolen(t)
		r, perSecond = sendCounted(t, m, s, "127.0.0.1:7003")
		away := stolen(t) - before
		if away < r.At/100 {
			break
		}
		t.Logf("the host kept its CPUs for %s of %s: once more", away, r.At)
	}

	var measured, lost, ticked time.Duration
	var sampled, runs uint64
	var counted float64
	for _, c := range r.CPUs {
		rows, _ := by(r, func(row cost.Row) bool { return row.CPU == c.Number })
		for w := range c.Time {
			if c.Time[w] > time.Millisecond {
				near(t, cost.Work(w).String(), rows[w].Seconds(), c.Time[w].Seconds(), 0.02)
			}
		}
		measured += c.Time[cost.RX]
		lost += c.Lost
		sampled += c.Sampled[cost.RX]
		ticked += c.Softirqs
		for i := range 2 {
			runs += c.Runs[cost.RX+cost.Work(i)]
		}
		counted += perSecond[c.Number]
	}
	near(t, "softirqs a second, as /proc/softirqs counts them", float64(runs)/r.At.Seconds(), counted, 0.05)
	if measured.Seconds() > 1.2*ticked.Seconds() {
		t.Errorf("net_rx took %s, softirqs of all kinds %s by /proc/stat", measured, ticked)
	}
	if lost != 0 {
		t.Errorf("%s had no row", lost)
	}
	// Samples do not tell the meter's programs from what they run in, and some of them run before or after it.
	inside := float64(sampled) / 997
	least, most := 0.9*measured.Seconds(), 1.1*(measured+r.Own).Seconds()
	t.Logf("seconds in net_rx: %.4g measured, %.4g sampled, of which the meter takes up to %.4g", measured.Seconds(), inside, r.Own.Seconds())
	if inside < least || inside > most {
		t.Errorf("seconds in net_rx as sampled: %.4g, want from %.4g to %.4g", inside, least, most)
	}
	near(t, "polls whose sizes are known", float64(r.PollSizes.Count()), float64(pollsOf(r.CPUs)), 0.01)
	if r.Own <= 0 {
		t.Error("the meter takes no time itself")
	}
}

func pollsOf(cpus []cost.CPU) (polls uint64) {
	for _, c := range cpus {
		polls += c.Polls
	}
	return polls
}

// What a queue lets go later is charged to who sent it.
func TestTransmit(t *testing.T) {
	testutil.Needs(t, "htb qdisc")
	top := testutil.Cgroup2(t)
	here, there := testutil.NewNamespace(t), testutil.NewNamespace(t)
	a, b := testutil.Veth(t, here, there, testutil.VethOptions{})
	here.Output(testutil.Tool(t, "tc"), "qdisc", "add", "dev", a.Name, "root", "handle", "1:", "htb", "default", "1")
	here.Output(testutil.Tool(t, "tc"), "class", "add", "dev", a.Name, "parent", "1:", "classid", "1:1", "htb", "rate", "20mbit", "burst", "1500")
	here.Enter(t)
	m := startMeter(t, top)
	r := during(t, m, func() { send(t, top, b.IPv4.Addr().String()+":7004") })
	id := cgroupID(t, top)
	times, packets := by(r, func(row cost.Row) bool { return row.Owner == cost.Owner{Kind: cost.Cgroup, ID: id} })
	if times[cost.TX] == 0 || packets < 100 {
		t.Errorf("of the sender's %d packets and %s in net_tx are known", packets, times[cost.TX])
	}
}

// send floods an address for a second from a process in a cgroup.
func send(t *testing.T, cgroup, address string) {
	t.Helper()
	cmd, dir := again(t, cgroup, sourceVariable, address)
	defer dir.Close()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// What is passed on belongs to nobody here, but the device it leaves by is known.
func TestForwarded(t *testing.T) {
	t.Run("received", func(t *testing.T) { testForwarded(t, cost.RX, func(*testutil.Namespace, string) {}) })
	t.Run("by a tasklet", func(t *testing.T) {
		testutil.Needs(t, "ifb link", "clsact qdisc", "mirred action")
		testForwarded(t, cost.Other, func(router *testutil.Namespace, in string) {
			ip, tc := testutil.Tool(t, "ip"), testutil.Tool(t, "tc")
			router.Output(ip, "link", "add", "shaped", "type", "ifb")
			router.Output(ip, "link", "set", "shaped", "up")
			router.Output(tc, "qdisc", "add", "dev", in, "clsact")
			router.Output(tc, "filter", "add", "dev", in, "ingress", "protocol", "all", "u32", "match", "u32", "0", "0",
				"action", "mirred", "egress", "redirect", "dev", "shaped")
		})
	})
}

// testForwarded has packets passed on in one kind of work.
func testForwarded(t *testing.T, work cost.Work, prepare func(router *testutil.Namespace, in string)) {
	top := testutil.Cgroup2(t)
	left, router, right := testutil.NewNamespace(t), testutil.NewNamespace(t), testutil.NewNamespace(t)
	a, in := testutil.Veth(t, left, router, testutil.VethOptions{})
	out, b := testutil.Veth(t, router, right, testutil.VethOptions{})
	router.Do(func() {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
			t.Error(err)
		}
	})
	prepare(router, in.Name)
	left.Output(testutil.Tool(t, "ip"), "route", "add", b.IPv4.Masked().String(), "via", in.IPv4.Addr().String(), "dev", a.Name)
	left.Enter(t)
	m := startMeter(t, top)
	s := newSource(t)
	to := b.IPv4.Addr().String() + ":7005"
	r := during(t, m, func() { s.send(time.Second, to) })
	times, packets := by(r, func(row cost.Row) bool {
		if row.Owner.Kind != cost.Forwarded {
			return false
		}
		_, index := row.Owner.Device()
		return index == out.Index
	})
	if times[work] == 0 {
		t.Errorf("forwarding takes no time in %s", work)
	}
	near(t, "packets", float64(packets), float64(s.sent[to]), 0.1)
}

// Rows of processes that have ended make way, the others stay.
func TestForget(t *testing.T) {
	top := testutil.Cgroup2(t)
	m := startMeter(t, top)
	ended, dir := again(t, top, sourceVariable, "127.0.0.1:7006")
	defer dir.Close()
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	gone, here := meterRowKey{Tgid: uint32(ended.Process.Pid)}, meterRowKey{Tgid: uint32(unix.Getpid()), Cgroup: 1}
	for _, key := range []meterRowKey{gone, here} {
		values := make([]meterRow, ebpf.MustPossibleCPU())
		if err := m.programs.Rows.Put(key, values); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.forget([]meterRowKey{gone, here, {}}); err != nil {
		t.Fatal(err)
	}
	var values []meterRow
	if err := m.programs.Rows.Lookup(gone, &values); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("the row of a process that has ended: %v", err)
	}
	if err := m.programs.Rows.Lookup(here, &values); err != nil {
		t.Errorf("the row of this process: %v", err)
	}
}
