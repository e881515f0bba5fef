package testutil

import "testing"

func TestLasting(t *testing.T) {
	const out = `qdisc htb 7e1f: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 7 direct_qlen 1000
class htb 7e1f:1 root leaf 7e20: prio 0 rate 1Gbit
class fq_codel 7e30:3a1 parent 7e30:
`
	const want = `qdisc htb 7e1f: root r2q 10 default 0x1 direct_qlen 1000
class htb 7e1f:1 root leaf 7e20: prio 0 rate 1Gbit
`
	if got := Lasting(out); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
