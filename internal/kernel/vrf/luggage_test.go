package vrf

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/testutil"
)

var seconds = regexp.MustCompile(`[0-9]+sec`)

// What a link had is there again after it has lost all of it, in the words of ip; and what there is
// already stays.
func TestLuggage(t *testing.T) {
	testutil.Needs(t, "ip")
	here, there := testutil.NewNamespace(t), testutil.NewNamespace(t)
	link, far := testutil.Veth(t, here, there, testutil.VethOptions{})
	var err error
	ip := func(args string) string {
		return here.Output("ip", strings.Fields(strings.NewReplacer("LINK", link.Name, "FAR4", far.IPv4.Addr().String(), "FAR6", far.IPv6.Addr().String()).Replace(args))...)
	}
	here.Do(func() { err = writeSysctl(acceptDAD(link.Name), "0") }) // else each address takes a second
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"addr add 192.0.2.1 peer 192.0.2.2 dev LINK label LINK:p",
		"addr add 192.0.2.9/24 dev LINK valid_lft 900 preferred_lft 0",
		"-6 addr add 2001:db8:7::1/64 dev LINK nodad noprefixroute",
		"route add default via FAR4 dev LINK proto dhcp metric 100",
		"route add 198.51.100.0/24 dev LINK scope link",
		"route add 203.0.113.0/24 via 198.18.0.1 dev LINK onlink mtu 1400",
		"route add 203.0.113.0/25 nexthop via FAR4 dev LINK weight 2 nexthop via 192.0.2.2 dev LINK",
		"route add 203.0.113.128/25 via FAR4 dev LINK table 1077",
		"-6 route add default via fe80::1 dev LINK proto ra metric 1024",
		"-6 route add 2001:db8:9::/48 metric 5 nexthop via FAR6 dev LINK nexthop via fe80::1 dev LINK",
		"neigh add 198.51.100.7 lladdr 02:00:00:00:00:07 dev LINK nud permanent",
		"-6 neigh add fe80::1 lladdr 02:00:00:00:00:01 dev LINK nud permanent",
	} {
		ip(args)
	}
	all := func() string {
		var text strings.Builder
		for _, args := range []string{"route show table all", "-6 route show table all", "addr", "neigh show nud permanent", "-6 neigh show nud permanent"} {
			text.WriteString("$ ip " + args + "\n" + testutil.Lasting(ip(args)))
		}
		return seconds.ReplaceAllString(text.String(), "…sec")
	}
	// An address of a link has its route a moment later than itself, and all is read one after the other.
	settle := func() string {
		text, before := all(), ""
		fresh := func() bool {
			return text != before || strings.Contains(text, "tentative") || !strings.Contains(text, "local fe80:")
		}
		for end := time.Now().Add(5 * time.Second); fresh() && time.Now().Before(end); text = all() {
			before = text
			time.Sleep(20 * time.Millisecond)
		}
		return text
	}
	before := settle()
	at := func(_ string, do func() error) error { return do() }
	to := map[int]uint32{link.Index: mainTable}
	var l *luggage
	here.Do(func() { l, err = pack(map[int]uint32{link.Index: mainTable}, &memory{}) })
	if err != nil {
		t.Fatal(err)
	}
	for _, lose := range [][]string{
		{"link set LINK down", "addr flush dev LINK", "link set LINK up"},
		{"route flush dev LINK table main", "neigh del 198.51.100.7 dev LINK"},
		nil,
	} {
		for _, args := range lose {
			ip(args)
		}
		here.Do(func() { err = l.unpack(to, at) })
		if err != nil {
			t.Fatalf("after %q: %v", lose, err)
		}
		if diff := cmp.Diff(before, settle()); diff != "" {
			t.Errorf("after %q (-before +after):\n%s", lose, diff)
		}
	}
}

// A message that is put together is what was taken apart, and one that is too short is none.
func TestMessage(t *testing.T) {
	m := message{head: []byte{1, 2, 3, 4}}
	m.addNumber(7, 77)
	m.add(9, []byte("odd"))
	back, err := parse(m.bytes(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, back, cmp.AllowUnexported(message{}, attr{})); diff != "" {
		t.Error(diff)
	}
	if n, ok := back.without(9).number(7); !ok || n != 77 || back.without(9).get(9) != nil {
		t.Errorf("%d, %v", n, ok)
	}
	if _, err := parse([]byte{1}, 4); err == nil {
		t.Error("too short")
	}
}
