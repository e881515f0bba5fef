package policy

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// parsePrefix reads the IPv4 or IPv6 prefix of a key; a bare address is a prefix of its
// full length. Bits behind the prefix must be zero: 10.1.2.3/8 is more often a
// slip than an abbreviation. The error is a *ValueError.
func parsePrefix(key, s string) (netip.Prefix, error) {
	fail := func(message, help string) (netip.Prefix, error) {
		return netip.Prefix{}, &ValueError{key + " " + quote(s) + " " + message, help}
	}
	address, length, slash := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(address)
	switch {
	case err != nil && leadingZeros(address):
		return fail("has a leading zero, which some read as octal", "")
	case err != nil:
		return fail("is not an address or a prefix", "as in 10.0.0.0/8, 192.0.2.1 or 2001:db8::/32")
	case addr.Zone() != "":
		return fail("has a zone", "leave %"+quoteless(addr.Zone())+" out: packets do not carry it")
	case addr.Is4In6():
		return fail("is an IPv4 address in IPv6 form, which is never on the wire", "write "+unmapped(addr, length, slash))
	}
	if !slash {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	n, err := strconv.Atoi(length)
	switch {
	case err != nil || length != strconv.Itoa(n):
		if mask, err := netip.ParseAddr(length); err == nil && mask.Is4() && addr.Is4() {
			if ones, ok := maskLength(mask.As4()); ok {
				return fail("has a netmask", "write "+netip.PrefixFrom(addr, ones).Masked().String())
			}
		}
		return fail("has no length behind the slash", "0 to "+strconv.Itoa(addr.BitLen()))
	case n < 0 || n > addr.BitLen():
		return fail("has a length out of range", "0 to "+strconv.Itoa(addr.BitLen()))
	}
	prefix := netip.PrefixFrom(addr, n)
	if masked := prefix.Masked(); masked != prefix {
		return fail("has bits set behind its length", "write "+masked.String()+" for the network, or "+addr.String()+" for the address")
	}
	return prefix, nil
}

// maskLength is the 8 of 255.0.0.0.
func maskLength(mask [4]byte) (ones int, ok bool) {
	m := binary.BigEndian.Uint32(mask[:])
	ones = bits.LeadingZeros32(^m)
	return ones, m != 0 && m<<ones == 0
}

// leadingZeros reports an IPv4 address such as 10.0.0.010.
func leadingZeros(address string) bool {
	for part := range strings.SplitSeq(address, ".") {
		if len(part) > 1 && part[0] == '0' && strings.Trim(part, "0123456789") == "" {
			return strings.Count(address, ".") == 3
		}
	}
	return false
}

// unmapped is ::ffff:10.0.0.0/104 as the 10.0.0.0/8 that it stands for.
func unmapped(addr netip.Addr, length string, slash bool) string {
	v4 := addr.Unmap()
	if bits, err := strconv.Atoi(length); slash && err == nil && bits >= 96 && bits <= 128 {
		return netip.PrefixFrom(v4, bits-96).Masked().String()
	}
	return v4.String()
}

// formatPrefix writes a prefix as parsePrefix reads it, hosts without a length.
func formatPrefix(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
