package policy

import "testing"

func TestCheckLinkName(t *testing.T) {
	for _, good := range []string{"e", "eth0", "br-lan", "eth0.100", "fifteen-bytes-x", "wlp0s20f3", "eth0@x", "á"} {
		if err := CheckLinkName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "sixteen-bytes-xx", "a b", "a/b", "a:b", ".", "..", "all", "default", "a\tb", "\x00", "à", "eth0\u00a0"} {
		if CheckLinkName(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
