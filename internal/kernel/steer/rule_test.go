package steer

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// recorded are the requests with which ethtool 6.1 asks for rules in slot 5, to queue 2, byte
// for byte but for runs of zeros, which are counted: `ethtool -N v flow-type ether dst
// 12:34:de:ad:ca:fe action 2 loc 5`, `… ip4 dst-ip 10.0.0.7 …`, `… ip6 dst-ip fd00::7 …`.
// What ethtool leaves in the field that an insertion has no use for (data) is zero here.
var recorded = map[string]plan.FlowRule{
	"32 z15 12 z3 1234deadcafe z66 ffffffffffff z70 02 z7 05 z31": {MAC: plan.MAC{0x12, 0x34, 0xde, 0xad, 0xca, 0xfe}, Queue: 2},
	"32 z15 0d z7 0a000007 z5 01 z62 ffffffff z68 02 z7 05 z31":   {Addr: netip.MustParseAddr("10.0.0.7"), Queue: 2},
	"32 z15 0e z19 fd00 z13 07 z56 ffffffffffffffffffffffffffffffff z44 02 z7 05 z31": {
		Addr: netip.MustParseAddr("fd00::7"), Queue: 2},
}

// unpack is a recorded request.
func unpack(t *testing.T, text string) (r rxnfc) {
	t.Helper()
	var all []byte
	for word := range strings.FieldsSeq(text) {
		if zeros, ok := strings.CutPrefix(word, "z"); ok {
			n := 0
			for _, digit := range zeros {
				n = 10*n + int(digit-'0')
			}
			all = append(all, make([]byte, n)...)
			continue
		}
		some, err := hex.DecodeString(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	whole := (*[unsafe.Sizeof(r)]byte)(unsafe.Pointer(&r))
	if copy(whole[:], all); len(all) < len(whole) {
		t.Fatalf("%q: %d bytes, the request has %d", text, len(all), len(whole))
	}
	return r
}

// TestRuleAsEthtool: a rule is asked for as ethtool does, and read as the rule that it is.
func TestRuleAsEthtool(t *testing.T) {
	// As a C compiler has them on all machines of 64 bits.
	if size, at := unsafe.Sizeof(rxnfc{}), unsafe.Offsetof(rxnfc{}.count)+4; size != 192 || at != 188 || unsafe.Sizeof(flowSpec{}) != 168 {
		t.Fatalf("struct ethtool_rxnfc has %d bytes and its slots begin at %d", size, at)
	}
	for text, rule := range recorded {
		want := unpack(t, text)
		got := rxnfc{cmd: unix.ETHTOOL_SRXCLSRLINS, spec: specOf(rule)}
		got.spec.slot = 5
		if got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", rule.To(), got, want)
		}
		if read, ok := ruleOf(want.spec); !ok || read != rule {
			t.Errorf("%s is read as %+v, %t", rule.To(), read, ok)
		}
		// What a driver leaves outside of the masks is nothing.
		other := want.spec
		other.value[51] = 7
		other.valueExt[3] = 7
		if read, ok := ruleOf(other); !ok || read != rule {
			t.Errorf("%s with garbage is read as %+v, %t", rule.To(), read, ok)
		}
		for what, change := range map[string]func(*flowSpec){
			"a port as well":         func(s *flowSpec) { s.mask[40] = 0xff },
			"a VLAN as well":         func(s *flowSpec) { s.maskExt[10] = 0xff },
			"a prefix only":          func(s *flowSpec) { s.mask[3], s.mask[7], s.mask[31] = 0, 0, 0 },
			"an RSS context":         func(s *flowSpec) { s.kind |= 0x20000000 },
			"to be dropped":          func(s *flowSpec) { s.queue = ^uint64(0) },
			"to a virtual function":  func(s *flowSpec) { s.queue |= 1 << 32 },
			"of TCP, which is other": func(s *flowSpec) { s.kind = 1 },
		} {
			other := want.spec
			change(&other)
			if read, ok := ruleOf(other); ok {
				t.Errorf("%s, %s: read as %+v", rule.To(), what, read)
			}
		}
	}
}

func TestLastFree(t *testing.T) {
	for _, tt := range []struct {
		taken []uint32
		size  uint32
		want  uint32
		err   error
	}{
		{nil, 8, 7, nil},
		{[]uint32{7, 6, 2}, 8, 5, nil},
		{[]uint32{1, 0}, 2, 0, unix.ENOSPC},
		{nil, 0, 0, unix.ENOSPC},
	} {
		if got, err := lastFree(tt.taken, tt.size); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%v of %d: %d, %v", tt.taken, tt.size, got, err)
		}
	}
}
