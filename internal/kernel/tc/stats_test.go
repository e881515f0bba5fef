package tc

import "testing"

// TestStatsHave64Bits decodes what the kernel sends once 2³² packets are over.
func TestStatsHave64Bits(t *testing.T) {
	basic := append(native.AppendUint64(nil, 1<<40), native.AppendUint32(nil, 5)...)
	attr := func(typ uint16, v []byte) []byte {
		b := native.AppendUint16(native.AppendUint16(nil, uint16(4+len(v))), typ)
		return append(b, v...)
	}
	b := append(attr(1, append(basic, 0, 0, 0, 0)), attr(8, native.AppendUint64(nil, 1<<32+5))...)
	if s, _ := parseStats(b); s.bytes != 1<<40 || s.packets != 1<<32+5 {
		t.Errorf("%+v", s)
	}
}
