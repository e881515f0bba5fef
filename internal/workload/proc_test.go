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
			name:   rapid.StringN(0, 15, 15).Draw(t, "name"), // parentheses and blanks included
			state:  rapid.SampledFrom([]byte("RSDZTtXI")).Draw(t, "state"),
			parent: rapid.Uint32().Draw(t, "parent"),
			start:  rapid.Uint64().Draw(t, "start"),
		}
		line := fmt.Sprintf("730 (%s) %c %d 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 %d 1000 1 18446744073709551615\n",
			want.name, want.state, want.parent, want.start)
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

func TestParseCgroups(t *testing.T) {
	v2, v1 := parseCgroups([]byte("12:net_cls,net_prio:/a:b\n3:name=systemd:/init.scope\n0::/web.slice/x.service (deleted)\n"))
	want := map[string]string{"net_cls": "/a:b", "net_prio": "/a:b", "name=systemd": "/init.scope"}
	if v2 != "/web.slice/x.service" || !maps.Equal(v1, want) {
		t.Errorf("parseCgroups = %q, %v; want %v", v2, v1, want)
	}
}

func TestParseUID(t *testing.T) {
	if uid, err := parseUID([]byte("Name:\tsh\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n")); err != nil || uid != 4 {
		t.Errorf("parseUID = %d, %v; want 4, the filesystem uid", uid, err)
	}
	if _, err := parseUID([]byte("Name:\tsh\n")); err == nil {
		t.Error("a status without uids was accepted")
	}
}
