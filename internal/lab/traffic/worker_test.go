package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func TestWorkerIsBornInItsPlace(t *testing.T) {
	ns, cgroup := testutil.NewNamespace(t), testutil.Cgroup2(t)
	s := serve(t, ns.Path(), 5201)
	w, err := StartWorker(ns.Path(), cgroup)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	procs, err := os.ReadFile(filepath.Join(cgroup, "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(procs)) != fmt.Sprint(w.PID()) {
		t.Errorf("in the cgroup: %q (%v), want %d", procs, err, w.PID())
	}
	inside, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", w.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.Stat(ns.Path()); err != nil || !os.SameFile(inside, want) {
		t.Errorf("it is in another namespace (%v)", err)
	}

	if group, err := unix.Getpgid(w.PID()); err != nil || group != w.PID() {
		t.Errorf("it is in process group %d (%v): a Ctrl-C would end it", group, err)
	}
	ctx := context.Background()
	if err := w.Send(ctx, Where{To: local(5201), Pace: 100e6}, 1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	sent, err := w.Stop(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sent == 0 || s.Bytes() == 0 || s.Bytes() > sent+1 {
		t.Errorf("%d bytes sent, %d received", sent, s.Bytes())
	}
	if err := w.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := unix.Kill(w.PID(), 0); err != unix.ESRCH {
		t.Errorf("after close it lives: %v", err)
	}
}

// TestWorkerFloodsAndAsks: one worker sends, another asks beside it.
func TestWorkerFloodsAndAsks(t *testing.T) {
	ns := testutil.NewNamespace(t)
	serve(t, ns.Path(), 5201)
	sink, err := OpenSink(ns.Path(), local(9))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	var workers [2]*Worker
	for i := range workers {
		if workers[i], err = StartWorker(ns.Path(), ""); err != nil {
			t.Fatal(err)
		}
		defer workers[i].Close()
	}
	sender, asker := workers[0], workers[1]
	ctx := context.Background()
	if err := sender.Flood(ctx, Where{To: local(9)}, 2, 64); err != nil {
		t.Fatal(err)
	}
	requests := Requests{Size: 48, Every: 2 * time.Millisecond, For: 100 * time.Millisecond}
	if _, err := asker.Ask(ctx, requests); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("asked without a connection: %v", err)
	}
	for range 2 { // the second in place of the first
		if err := asker.Connect(ctx, Where{To: local(5201)}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := asker.Ask(ctx, requests)
	if err != nil || l.N != 50 || l.P50 <= 0 || l.P99 < l.P50 {
		t.Errorf("asked: %+v, %v", l, err)
	}
	if sent, err := sender.Stop(ctx); err != nil || sent == 0 || arrived(ns) == 0 {
		t.Errorf("%d datagrams were sent and %d arrived, %v", sent, arrived(ns), err)
	}
	if sent, err := sender.Stop(ctx); err != nil || sent != 0 {
		t.Errorf("after the stop %d more were sent, %v", sent, err)
	}
}

func TestWorkerAnswersWithErrors(t *testing.T) {
	ns := testutil.NewNamespace(t)
	w, err := StartWorker(ns.Path(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = w.Send(context.Background(), Where{To: local(9)}, 1)
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody listens: %v", err)
	}
	if err := w.Connect(context.Background(), Where{To: local(9)}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody answers: %v", err)
	}
	if _, err := w.ask(context.Background(), order{Verb: "dance"}); err == nil || !strings.Contains(err.Error(), "dance") {
		t.Errorf("unknown order: %v", err)
	}
	// It is alive after all that.
	if _, err := w.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestWorkerEndsWithItsParent closes what a dead parent would have left closed.
func TestWorkerEndsWithItsParent(t *testing.T) {
	testutil.Needs(t, "root")
	w, err := StartWorker("", "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case _, alive := <-w.answers:
		if alive {
			t.Error("an answer without an order")
		}
	case <-time.After(5 * time.Second):
		t.Error("it lives on")
	}
	if err := w.Send(context.Background(), Where{To: local(9)}, 1); err == nil {
		t.Error("a dead worker takes orders")
	}
}

func TestWorkerWithoutCgroup(t *testing.T) {
	_, err := StartWorker("", filepath.Join(t.TempDir(), "absent"))
	if err == nil || !strings.HasPrefix(err.Error(), "start traffic worker: ") {
		t.Errorf("got %v", err)
	}
}

// An answer may be as long as it likes, as that of who watched busy CPUs is; what is no answer is said to be none, and ends it.
func TestWorkerIsListenedTo(t *testing.T) {
	long := answer{Absences: make([]Absence, 5_000)}
	from, to := io.Pipe()
	w := &Worker{answers: make(chan answer)}
	go w.listen(from)
	go func() {
		out := json.NewEncoder(to)
		_ = out.Encode(answer{Sent: 1})
		_ = out.Encode(long)
		fmt.Fprintln(to, "no answer")
	}()
	if a := <-w.answers; a.Sent != 1 || a.Error != "" {
		t.Errorf("the first one: %+v", a)
	}
	if a := <-w.answers; len(a.Absences) != len(long.Absences) || a.Error != "" {
		t.Errorf("the long one: %d absences, %s", len(a.Absences), a.Error)
	}
	if a := <-w.answers; a.Error == "" {
		t.Errorf("what is none: %+v", a)
	}
	if _, alive := <-w.answers; alive {
		t.Error("it goes on")
	}
}
