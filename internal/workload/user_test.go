package workload

import (
	"maps"
	"strings"
	"testing"
)

func TestUserID(t *testing.T) {
	for name, want := range map[string]uint32{"root": 0, "0": 0, "3999999999": 3999999999} {
		if uid, ok := UserID(name); !ok || uid != want {
			t.Errorf("UserID(%q) = %d, %v; want %d", name, uid, ok, want)
		}
	}
	for _, name := range []string{"", "no-such-user-of-weir", "-1", "4294967295", "4294967296", "0x10"} {
		if uid, ok := UserID(name); ok {
			t.Errorf("UserID(%q) = %d, want none", name, uid)
		}
	}
}

func TestParsePasswd(t *testing.T) {
	const text = "# comment:x:1:1:::\nzoe:x:1000:1000:Zoe:/home/zoe:/bin/sh\n+nis:x:0:0:::\n\nbroken:x\n" +
		"ann:x:1001:1001::/:/bin/sh\nann:x:1002:1002::/:/bin/sh\n4711:x:1003:1003::/:/bin/sh\n"
	users, err := parsePasswd(strings.NewReader(text))
	if err != nil || !maps.Equal(users, map[string]string{"ann": "1001", "zoe": "1000", "4711": "1003"}) {
		t.Errorf("parsePasswd = %v, %v; want ann, zoe and 4711", users, err)
	}
	if uid, ok := userID("4711", users); !ok || uid != 1003 {
		t.Errorf("a name in digits has uid %d, %v; want 1003: names come first", uid, ok)
	}
}
