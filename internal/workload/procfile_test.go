package workload

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

func TestParseStat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := procStat{
			name:    rapid.StringN(0, 15, 15).Draw(t, "name"), // parentheses and blanks included
			state:   rapid.SampledFrom([]byte("RSDZTtXI")).Draw(t, "state"),
			parent:  rapid.Uint32().Draw(t, "parent"),
			threads: rapid.Uint32().Draw(t, "threads"),
			start:   rapid.Uint64().Draw(t, "start"),
		}
		line := fmt.Sprintf("730 (%s) %c %d 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 %d 0 %d 1000 1 18446744073709551615\n",
			want.name, want.state, want.parent, want.threads, want.start)
		got, err := parseStat([]byte(line))
		if err != nil || got != want {
			t.Fatalf("parseStat(%q) = %+v, %v; want %+v", line, got, err, want)
		}
	})
	for _, bad := range []string{"", "730 sh S 1", "730 (sh) S 1 2 3", ")("} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// A process whose first thread has ended before the others is no zombie.
func TestExited(t *testing.T) {
	for stat, want := range map[procStat]bool{
		{state: 'S', threads: 1}: false,
		{state: 'Z', threads: 1}: true,
		{state: 'X'}:             true,
		{state: 'Z', threads: 2}: false,
	} {
		if got := stat.exited(); got != want {
			t.Errorf("%c with %d threads: exited is %v", stat.state, stat.threads, got)
		}
	}
}

func TestParseCgroups(t *testing.T) {
	v2, v1 := parseCgroups([]byte("12:net_cls,net_prio:/a:b\n3:name=systemd:/init.scope\n0::/web.slice/x (deleted)\n"))
	want := map[string]string{"net_cls": "/a:b", "net_prio": "/a:b", "name=systemd": "/init.scope"}
	if v2 != "/web.slice/x (deleted)" || !maps.Equal(v1, want) {
		t.Errorf("parseCgroups = %q, %v; want %v", v2, v1, want)
	}
}

func TestParseStatus(t *testing.T) {
	const text = "Name:\tx\\nUid:\t0\t0\t0\t0\nTgid:\t730\nPid:\t731\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n"
	if got, err := parseStatus([]byte(text)); err != nil || got != (procStatus{process: 730, uid: 4}) {
		t.Errorf("parseStatus = %+v, %v; want process 730 and the filesystem uid, 4", got, err)
	}
	for _, bad := range []string{"", "Tgid:\t730\n", "Uid:\t1\t2\t3\t4\n", "Tgid:\tx\nUid:\t1\t2\t3\t4\n"} {
		if got, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}
