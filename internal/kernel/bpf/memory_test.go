package bpf

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

// TestOtherVersion pins tables of another shape where ours are expected.
func TestOtherVersion(t *testing.T) {
	for _, name := range []string{"tasks", "g1/flows", "g1/5/contracts"} {
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			room := newRoom(t)
			g := begin(t, room, 1, noRules(), bare)
			load(t, g, 5, noRules(), promises(1))
			g.Close()
			path := filepath.Join(room.Dir, name)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "old", Type: ebpf.Hash, KeySize: 4, ValueSize: 12, MaxEntries: 7})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := m.Pin(path); err != nil {
				t.Fatal(err)
			}
			g, err = room.Open(1)
			if err == nil {
				defer g.Close()
				_, err = g.Promises(5)
			}
			if !errors.Is(err, ErrOtherVersion) || !strings.Contains(err.Error(), path) {
				t.Errorf("open: %v, want ErrOtherVersion and the path", err)
			}
			if name == "tasks" {
				if _, err := room.Begin(2, noRules(), bare); !errors.Is(err, ErrOtherVersion) {
					t.Errorf("begin: %v", err)
				}
				if all, err := room.Generations(); err != nil || !slices.Equal(all, []uint32{1}) {
					t.Errorf("generations %v are left: %v", all, err)
				}
			}
			if err := room.Remove(); err != nil {
				t.Errorf("remove: %v", err)
			}
		})
	}
}

// TestShapes holds the tables that several objects declare against each other.
func TestShapes(t *testing.T) {
	seen := map[string]*ebpf.MapSpec{}
	for name, load := range map[string]func() (*ebpf.CollectionSpec, error){
		"link_egress": loadLinkEgress, "socket_create": loadSocketCreate, "births": loadBirths, "classify": loadClassify,
	} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range spec.Maps {
			if strings.HasPrefix(m.Name, ".") {
				continue
			}
			if len(m.Name) > 15 {
				t.Errorf("%s: map name %q is longer than the kernel keeps", name, m.Name)
			}
			first := seen[m.Name]
			if first == nil {
				seen[m.Name] = m
				continue
			}
			if m.Type != first.Type || m.KeySize != first.KeySize || m.ValueSize != first.ValueSize || m.Flags != first.Flags {
				t.Errorf("%s: table %s is %v, elsewhere %v", name, m.Name, m, first)
			}
		}
	}
	if len(seen) < 14 {
		t.Errorf("only %d tables: %v", len(seen), slices.Sorted(maps.Keys(seen)))
	}
}
