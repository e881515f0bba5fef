package bpf

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/weir-net/weir/internal/testutil"
)

func newTable(t testing.TB, typ ebpf.MapType, size uint32) *ebpf.Map {
	t.Helper()
	testutil.Needs(t, "root")
	_ = rlimit.RemoveMemlock() // as Begin does
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "test", Type: typ, KeySize: 4, ValueSize: 4, MaxEntries: size})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestFillAndRead crosses the border of a batch, with and without batches.
func TestFillAndRead(t *testing.T) {
	for _, n := range []int{0, 1, batch - 1, batch, batch + 1, 3*batch + 7} {
		want := map[uint32]uint32{}
		for i := range uint32(n) {
			want[i*7] = i
		}
		m := newTable(t, ebpf.Hash, uint32(max(n, 1)))
		if err := fill(m, want); err != nil {
			t.Fatal(err)
		}
		for name, get := range map[string]func(*ebpf.Map) (map[uint32]uint32, error){
			"in batches": read[uint32, uint32], "one by one": readOneByOne[uint32, uint32],
		} {
			if got, err := get(m); err != nil || !maps.Equal(got, want) {
				t.Errorf("%d entries %s: read %d, %v", n, name, len(got), err)
			}
		}
		again := newTable(t, ebpf.Hash, uint32(max(n, 1)))
		var keys, values []uint32
		for k, v := range want {
			keys, values = append(keys, k), append(values, v)
		}
		if err := fillOneByOne(again, keys, values); err != nil {
			t.Fatal(err)
		}
		if got, err := read[uint32, uint32](again); err != nil || !maps.Equal(got, want) {
			t.Errorf("%d entries filled one by one: read %d, %v", n, len(got), err)
		}
	}
}

func TestFillTooMany(t *testing.T) {
	m := newTable(t, ebpf.Hash, 2)
	if err := fill(m, map[uint32]uint32{1: 1, 2: 2, 3: 3}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "fill table") {
		t.Errorf("three entries in a table of two: %v", err)
	}
}
