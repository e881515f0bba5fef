package vrf

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// A bed is a namespace with a link, and a room whose work may be broken off.
type bed struct {
	t         *testing.T
	here      *testutil.Namespace
	link, far testutil.End
	room      Room
	places    int // of the last work
	breakAt   int // a place of the next one; 0: none
	show      string
}

var indexes = regexp.MustCompile(`(?m)^\d+: \b`)

var errBroken = errors.New("broken off")

func newBed(t *testing.T) *bed {
	testutil.Needs(t, "vrf link", "ip")
	b := &bed{t: t, here: testutil.NewNamespace(t), room: Room{RunDir: t.TempDir()}}
	b.link, b.far = testutil.Veth(t, b.here, testutil.NewNamespace(t), testutil.VethOptions{})
	b.sysctl(acceptDAD(b.link.Name), "0") // else each address takes a second
	b.show = filepath.Join(t.TempDir(), "show")
	text := "rule\nroute show table all\naddr\nvrf\n"
	if err := os.WriteFile(b.show, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) sysctl(name, value string) {
	b.t.Helper()
	var err error
	b.here.Do(func() { err = writeSysctl(name, value) })
	if err != nil {
		b.t.Fatal(err)
	}
}

// ip runs a command of ip, with names for what the bed has.
func (b *bed) ip(args string) string {
	b.t.Helper()
	return b.here.Output("ip", strings.Fields(strings.NewReplacer("LINK", b.link.Name, "FAR4", b.far.IPv4.Addr().String(), "FAR6", b.far.IPv6.Addr().String()).Replace(args))...)
}

// all is all that a VRF could change, in the words of ip, when no address is new any more.
func (b *bed) all() string {
	b.t.Helper()
	last := ""
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		text := b.ip("-4 -b "+b.show) + b.ip("-6 -b "+b.show)
		made := !strings.Contains(text, "tentative") && strings.Contains(text, "local fe80:")
		text = indexes.ReplaceAllString(seconds.ReplaceAllString(testutil.Lasting(text), "…sec"), "…: ")
		if made && text == last || time.Since(begin) > 20*time.Second {
			return text
		}
		last = text
	}
}

// reach makes VRFs, and no others.
func (b *bed) reach(want map[string]plan.VRF) error {
	b.places = 0
	var err error
	b.here.Do(func() {
		err = b.room.Apply(want, func(string) error {
			if b.places++; b.places == b.breakAt {
				return errBroken
			}
			return nil
		})
	})
	return err
}

func (b *bed) mustReach(want map[string]plan.VRF) {
	b.t.Helper()
	b.breakAt = 0
	if err := b.reach(want); err != nil {
		b.t.Fatal(err)
	}
}

// lacks is what a VRF lacks as it is read back.
func (b *bed) lacks(name string) string {
	b.t.Helper()
	var all map[string]plan.VRF
	var err error
	b.here.Do(func() { all, err = b.room.Read() })
	if err != nil {
		b.t.Fatal(err)
	}
	v, there := all[name]
	if !there {
		return "it is not there"
	}
	return strings.Join(v.Lacks, "; ")
}

// drifts has others take away what makes a VRF, each thing in turn: it is read back, an apply makes it as it was,
// and once more changes nothing.
func (b *bed) drifts(want map[string]plan.VRF, drifts [][2]string) {
	b.t.Helper()
	whole := b.all()
	for _, d := range drifts {
		b.ip(d[0])
		if got := b.lacks("mgmt"); got != d[1] {
			b.t.Errorf("after ip %s it lacks %q, not %q", d[0], got, d[1])
		}
		b.mustReach(want)
		if diff := cmp.Diff(whole, b.all()); diff != "" {
			b.t.Errorf("ip %s is not mended (-before +after)\n%s", d[0], diff)
		}
		if b.mustReach(want); b.places != 0 {
			b.t.Errorf("after ip %s it is made once more in %d places", d[0], b.places)
		}
	}
}
