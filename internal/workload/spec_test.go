package workload

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestParseSocketSpec(t *testing.T) {
	end := netip.MustParseAddrPort
	for text, want := range map[string]SocketSpec{
		"tcp 10.0.0.1:22 10.0.0.2:4711":       {unix.IPPROTO_TCP, end("10.0.0.1:22"), end("10.0.0.2:4711")},
		" UDP\t[fe80::1%eth0]:53  ":           {unix.IPPROTO_UDP, end("[fe80::1%eth0]:53"), netip.AddrPort{}},
		"tcp [::ffff:10.0.0.1]:22 10.0.0.2:1": {unix.IPPROTO_TCP, end("10.0.0.1:22"), end("10.0.0.2:1")},
	} {
		if got, err := ParseSocketSpec(text); err != nil || got != want {
			t.Errorf("ParseSocketSpec(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, bad := range []string{
		"", "tcp", "sctp 10.0.0.1:22", "tcp 10.0.0.1", "tcp 10.0.0.1:0", "tcp ::1:22", "tcp 10.0.0.1:22 [::1]:23",
		"tcp 10.0.0.1:22 10.0.0.2:23 10.0.0.3:24", "tcp host:22", "tcp 10.0.0.1:65536",
	} {
		if spec, err := ParseSocketSpec(bad); err == nil {
			t.Errorf("%q was read as %v", bad, spec)
		}
	}
}

var (
	drawnIPv4 = rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
	})
	drawnIPv6 = rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes")))
	}).Filter(func(a netip.Addr) bool { return !a.Is4In6() }) // those read back as IPv4
)

func TestSocketSpecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		six := rapid.Bool().Draw(t, "six")
		drawEnd := func(label string) netip.AddrPort {
			addresses := drawnIPv4
			if six {
				addresses = drawnIPv6
			}
			return netip.AddrPortFrom(addresses.Draw(t, label), rapid.Uint16Range(1, 65535).Draw(t, label+" port"))
		}
		want := SocketSpec{Protocol: rapid.SampledFrom([]uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP}).Draw(t, "protocol"), Local: drawEnd("local")}
		if rapid.Bool().Draw(t, "connected") {
			want.Remote = drawEnd("remote")
		}
		if got, err := ParseSocketSpec(want.String()); err != nil || got != want {
			t.Fatalf("%q reads back as %v, %v", want, got, err)
		}
	})
}
