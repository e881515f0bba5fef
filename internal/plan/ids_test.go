package plan

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestAssign walks through many sets of names: who stays keeps its contract, no
// two have one number, and no pair of number and serial comes back.
func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ids IDs
		used := map[Contract]string{}
		for range rapid.IntRange(1, 20).Draw(t, "applies") {
			names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), rapid.ID[string]).Draw(t, "names")
			next := ids.Assign(names)
			if len(next.Names) != len(names) {
				t.Fatalf("%d contracts for %q", len(next.Names), names)
			}
			numbers := map[ContractID]bool{}
			for name, c := range next.Names {
				if numbers[c.ID] || c.ID < FirstID || c.Serial == 0 {
					t.Fatalf("%s has %+v of %v", name, c, next.Names)
				}
				numbers[c.ID] = true
				if before, ok := ids.Names[name]; ok {
					if before != c {
						t.Fatalf("%s had %+v, has %+v", name, before, c)
					}
				} else if whose, ok := used[c]; ok {
					t.Fatalf("%s gets %+v, which was %s's", name, c, whose)
				}
				used[c] = name
			}
			if again := next.Assign(names); !maps.Equal(again.Names, next.Names) || again.Next != next.Next {
				t.Fatalf("assigned again: %v, before %v", again, next)
			}
			ids = next
		}
	})
}

func TestAssignWrapsItsSerials(t *testing.T) {
	ids := IDs{Next: 65535}.Assign([]string{"a", "b"})
	if a, b := ids.Names["a"], ids.Names["b"]; a.Serial != 65535 || b.Serial != 1 || ids.Next != 2 {
		t.Errorf("%+v, %+v, next %d", a, b, ids.Next)
	}
}

func TestAssignToTheLast(t *testing.T) {
	names := make([]string, MaxContracts)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	ids := IDs{}.Assign(names)
	if ids.Highest() != 65535 || len(ids.Names) != MaxContracts {
		t.Errorf("highest %d of %d", ids.Highest(), len(ids.Names))
	}
	if (IDs{}).Highest() != Unclassified {
		t.Error("highest of none")
	}
}

func TestTag(t *testing.T) {
	if tag := (Contract{ID: 0x1234, Serial: 0xabcd}).Tag(); tag != 0xabcd1234 {
		t.Errorf("tag %#x", tag)
	}
}
