package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// stufferEnv makes the test binary a stuffer: it fills a connection whose other end does
// not read, and then keeps it or, where "close" follows the address, closes it.
const stufferEnv = "WEIR_TEST_STUFFER"

func runStuffer(text string) int {
	address, how, _ := strings.Cut(text, " ")
	c, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, err = c.Write(make([]byte, 64<<10))
	}
	if how == "close" {
		c.Close()
	}
	fmt.Println("stuffed")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// stuffer starts one on this side, in a cgroup if one is given, and waits until it has stuffed.
func (b *bench) stuffer(t *testing.T, cgroup, what string) (pid uint32) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), stufferEnv+"="+what)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	// A pipe of our own: launch waits for the process, which would close that of StdoutPipe.
	out, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = write, os.Stderr
	launch(t, b.here, cgroup, cmd)
	write.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "stuffed\n" {
		t.Fatalf("the stuffer of %s says %q, %v", what, line, err)
	}
	return uint32(cmd.Process.Pid)
}

// report is what is told, of sockets that hold something.
func (b *bench) report(t *testing.T, q SocketQuery) *SocketReport {
	t.Helper()
	r, err := b.Sockets(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holds is what a workload holds towards a port, as "PID of STATE", and in bytes.
func (r *SocketReport) holds(workload string, port int) (all []string, held uint64) {
	for _, h := range r.Holders {
		for _, s := range h.Sockets {
			if h.Workload != workload || !strings.HasSuffix(s.Peer, fmt.Sprintf(":%d", port)) {
				continue
			}
			text := s.State
			for _, p := range s.Processes {
				text = strings.Join([]string{strconv.Itoa(int(p.PID)), text}, " of ")
			}
			all, held = append(all, text), held+s.Held
		}
	}
	return all, held
}

// Each socket is told to be held by the workload that claims it: by its process' tag, its
// cgroup, its flow, and where no process has it any more by what the kernel knows of it.
// It holds what ss says.
func TestSocketsOfWorkloads(t *testing.T) {
	testutil.Needs(t, "ss")
	b := newBench(t)
	dir, group := b.makeCgroup(t, "jobs")
	other, _ := b.makeCgroup(t, "other")
	b.apply(t, b.policyText(fmt.Sprintf(`
  jobs: {match: [{cgroup: %s}], priority: 3}
  flow: {match: [{port: 4003}], priority: 4}
  idle: {match: [{port: 4009}], priority: 5}
`, group)))
	launch(t, b.there, "", exec.Command("sleep", "600")) // or nobody is there, and nobody looks
	listeners := map[int]net.Listener{}
	for port := 4001; port <= 4004; port++ {
		var err error
		b.there.Do(func() { listeners[port], err = net.Listen("tcp4", fmt.Sprintf("%s:%d", b.far.IPv4.Addr(), port)) })
		if err != nil {
			t.Fatal(err)
		}
		defer listeners[port].Close()
	}
	to := func(port int) string { return fmt.Sprintf("%s:%d", b.far.IPv4.Addr(), port) }
	job := b.stuffer(t, dir, to(4001))
	b.stuffer(t, dir, to(4002)+" close")
	b.stuffer(t, other, to(4003)+" close")
	set := b.stuffer(t, other, to(4004))
	b.set(t, set, priority(9))

	r := b.report(t, SocketQuery{})
	for _, want := range []struct {
		workload string
		port     int
		sockets  string
	}{
		{"jobs", 4001, fmt.Sprintf("%d of established", job)},
		{"jobs", 4002, "fin-wait-1"},
		{"flow", 4003, "fin-wait-1"},
		{fmt.Sprintf("pid %d", set), 4004, fmt.Sprintf("%d of established", set)},
	} {
		sockets, held := r.holds(want.workload, want.port)
		if diff := gocmp.Diff([]string{want.sockets}, sockets); diff != "" {
			t.Errorf("%s towards %d: %s", want.workload, want.port, diff)
		}
		if ss := b.skmem(t, want.port); held != ss || held < 64<<10 {
			t.Errorf("%s towards %d holds %d, ss says %d", want.workload, want.port, held, ss)
		}
	}
	for i, h := range r.Holders {
		var sum uint64
		for _, s := range h.Sockets {
			sum += s.Held
		}
		switch {
		case h.Workload == "idle":
			t.Errorf("who has no socket holds %+v", h)
		case h.Workload == "" && (len(h.Sockets) > 0 || h.Cgroup != ""):
			t.Errorf("what nobody claims is told though nobody asked: %+v", h)
		case h.Workload != "" && (sum != h.Held || h.Held != h.SocketMemory.Held()):
			t.Errorf("%s holds %d, its sockets %d", h.Workload, h.Held, sum)
		case i > 0 && h.Held > r.Holders[i-1].Held:
			t.Errorf("%+v comes too late", h)
		}
	}
	b.agrees(t, r, job, set)

	// All: those that nobody claims by their cgroups, and those that hold nothing.
	all := b.report(t, SocketQuery{All: true})
	listens := 0
	for _, h := range all.Holders {
		if h.Count != len(h.Sockets) {
			t.Errorf("%d of %d sockets are told of %+v", len(h.Sockets), h.Count, h)
		}
		for _, s := range h.Sockets {
			if s.State == "listen" && len(s.Processes) > 0 && s.Processes[0].PID == uint32(os.Getpid()) {
				listens++
			}
		}
	}
	if listens < len(listeners) {
		t.Errorf("%d listeners are told of %d", listens, len(listeners))
	}
	// One: nobody else.
	one := b.report(t, SocketQuery{Workload: "jobs"})
	if len(one.Holders) != 1 || one.Holders[0].Workload != "jobs" || one.Holders[0].Count != 2 {
		t.Errorf("of jobs alone: %+v", one.Holders)
	}
	if idle := b.report(t, SocketQuery{Workload: "idle", All: true}); len(idle.Holders) != 0 {
		t.Errorf("of idle alone: %+v", idle.Holders)
	}
	var unknown *UnknownWorkload
	if _, err := b.Sockets(context.Background(), SocketQuery{Workload: "jbos"}); !errors.As(err, &unknown) || !slices.Contains(unknown.Known, "jobs") {
		t.Errorf("an unknown workload: %v", err)
	}
	if names, err := b.Workloads(); err != nil || len(names) != 4 {
		t.Errorf("in force: %v, %v", names, err)
	}
}

// What no process has any more is whose its packets are, and after another apply its maker's:
// also where a program is named, and where the cgroup is gone.
func TestSocketsOfOrphans(t *testing.T) {
	b := newBench(t)
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	policy := "  made: {match: [{exe: %q}], priority: %d}\n"
	b.apply(t, b.policyText(fmt.Sprintf(policy, self, 3)))
	launch(t, b.there, "", exec.Command("sleep", "600"))
	var l net.Listener
	b.there.Do(func() { l, err = net.Listen("tcp4", b.far.IPv4.Addr().String()+":4001") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir, _ := b.makeCgroup(t, "brief")
	pid := b.stuffer(t, dir, l.Addr().String()+" close")
	if err := unix.Kill(int(pid), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for try := 0; os.Remove(dir) != nil; time.Sleep(10 * time.Millisecond) {
		if try++; try == 1000 {
			t.Fatal("the cgroup does not go away")
		}
	}
	launch(t, b.here, "", exec.Command("sleep", "600")) // or nobody is here, and nobody looks
	for priority := 4; priority < 6; priority++ {
		if orphans, held := b.report(t, SocketQuery{}).holds("made", 4001); len(orphans) != 1 || held < 64<<10 {
			t.Errorf("%v hold %d bytes", orphans, held)
		}
		b.apply(t, b.policyText(fmt.Sprintf(policy, self, priority)))
	}
}

// skmem is what ss says that the sockets towards a port hold.
func (b *bench) skmem(t *testing.T, port int) (sum uint64) {
	t.Helper()
	out := b.here.Output("ss", "--tcp", "--all", "--numeric", "--memory", "--no-header", "dport", "=", fmt.Sprintf(":%d", port))
	for _, m := range regexp.MustCompile(`skmem:\(r(\d+),rb\d+,t\d+,tb\d+,f(\d+),w(\d+),`).FindAllStringSubmatch(out, -1) {
		for _, figure := range m[1:] {
			n, err := strconv.ParseUint(figure, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// agrees holds a report against what explain says of the sockets of processes.
func (b *bench) agrees(t *testing.T, r *SocketReport, pids ...uint32) {
	t.Helper()
	for _, pid := range pids {
		x, err := b.ExplainPID(context.Background(), pid)
		if err != nil {
			t.Fatal(err)
		}
		if len(x.Sockets) == 0 {
			t.Errorf("process %d has no sockets", pid)
		}
		for _, s := range x.Sockets {
			found := slices.ContainsFunc(r.Holders, func(h SocketHolder) bool {
				return h.Workload == s.Workload && slices.ContainsFunc(h.Sockets, func(u SocketUse) bool {
					return s.Subject == fmt.Sprintf("socket %s %s (process %d)", u.Local, u.Peer, pid)
				})
			})
			if !found {
				t.Errorf("%s is %s's, as explain says, and not among %+v", s.Subject, s.Workload, r.Holders)
			}
		}
	}
}

// What waits to be accepted is its listener's: nobody has it, and it may hold most.
func TestSocketsThatWait(t *testing.T) {
	b := newBench(t)
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	b.apply(t, b.policyText(fmt.Sprintf("  server: {match: [{exe: %q}], priority: 3}\n  client: {match: [{cgroup: %s}], priority: 4}\n", self, b.cgroup)))
	launch(t, b.there, "", exec.Command("sleep", "600"))
	for _, address := range []string{b.far.IPv4.Addr().String() + ":4001", "0.0.0.0:4002", "[::]:4003"} {
		var l net.Listener
		b.there.Do(func() { l, err = net.Listen("tcp", address) })
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		b.stuffer(t, b.dir, fmt.Sprintf("%s:%d", b.far.IPv4.Addr(), port))
		var waits []SocketUse
		for try := 0; try < 100 && (len(waits) != 1 || waits[0].Receive < 64<<10); try++ { // it is on its way
			if try > 0 {
				time.Sleep(50 * time.Millisecond)
			}
			waits = nil
			for _, h := range b.report(t, SocketQuery{Workload: "server"}).Holders {
				for _, s := range h.Sockets {
					if strings.HasSuffix(s.Local, fmt.Sprintf(":%d", port)) {
						waits = append(waits, s)
					}
				}
			}
		}
		if len(waits) != 1 || waits[0].Accepted || waits[0].Receive < 64<<10 || len(waits[0].Processes) != 1 || waits[0].Processes[0].PID != uint32(os.Getpid()) {
			t.Errorf("at %s there wait %+v", address, waits)
		}
	}
}

// Without a policy nobody claims anything: what holds something is told, by cgroups.
func TestSocketsOfNobody(t *testing.T) {
	b := newBench(t)
	var l net.Listener
	var err error
	b.there.Do(func() { l, err = net.Listen("tcp4", b.far.IPv4.Addr().String()+":4001") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pid := b.stuffer(t, b.dir, l.Addr().String())
	told := 0
	for _, h := range b.report(t, SocketQuery{}).Holders {
		if h.Workload != "" {
			t.Errorf("somebody holds %+v", h)
		}
		for _, s := range h.Sockets {
			if s.Held == 0 {
				t.Errorf("it holds nothing: %+v", s)
			}
			if len(s.Processes) == 1 && s.Processes[0].PID == pid && h.Cgroup == b.cgroup {
				told++
			}
		}
	}
	if told != 1 {
		t.Errorf("%d sockets of the process are told, want one", told)
	}
	if _, err := b.Sockets(context.Background(), SocketQuery{Workload: "jobs"}); !errors.Is(err, ErrNothingApplied) {
		t.Errorf("a workload without a policy: %v", err)
	}
}

// A socket is its maker's, as the kernel has it, though its process is another user's by now.
func TestSocketsOfAnotherUser(t *testing.T) {
	b := newBench(t)
	b.apply(t, b.policyText("  daemon: {match: [{user: \"65534\"}], priority: 3}\n"))
	var l net.Listener
	var c net.Conn
	var err error
	b.there.Do(func() { l, err = net.Listen("tcp4", b.far.IPv4.Addr().String()+":4001") })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.here.Do(func() { c, err = net.Dial("tcp4", l.Addr().String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if controlled := raw.Control(func(fd uintptr) { err = unix.Fchown(int(fd), 65534, -1) }); controlled != nil || err != nil {
		t.Fatal(controlled, err)
	}
	b.apply(t, b.policyText("  daemon: {match: [{user: \"65534\"}], priority: 4}\n")) // asks anew
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	x, err := b.ExplainPID(context.Background(), uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(x.Sockets, func(s Explanation) bool { return strings.Contains(s.Subject, c.LocalAddr().String()+" ") })
	if i < 0 || x.Sockets[i].Workload != "daemon" || x.Sockets[i].Agrees == nil || !*x.Sockets[i].Agrees || x.Workload != "" {
		t.Errorf("the process is explained as %+v", x)
	}
	launch(t, b.here, "", exec.Command("sleep", "600"))
	r := b.report(t, SocketQuery{Workload: "daemon", All: true})
	if len(r.Holders) != 1 || r.Holders[0].Count != 1 || r.Holders[0].Sockets[0].Local != c.LocalAddr().String() {
		t.Errorf("of the user are %+v", r.Holders)
	}
}
