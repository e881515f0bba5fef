package bpf

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestOpenAbsent(t *testing.T) {
	room := newRoom(t)
	if _, err := room.Open(1); !errors.Is(err, ErrAbsent) {
		t.Errorf("open where nothing is: %v", err)
	}
	if _, err := room.Sockets(); !errors.Is(err, ErrAbsent) {
		t.Errorf("open sockets where nothing is: %v", err)
	}
	g := begin(t, room, 1, noRules(), bare)
	if _, err := room.Open(2); !errors.Is(err, ErrAbsent) {
		t.Errorf("open another generation: %v", err)
	}
	if _, err := g.Promises(7); !errors.Is(err, ErrAbsent) {
		t.Errorf("read promises of a link that has none: %v", err)
	}
	if _, err := room.Begin(1, noRules(), bare); !errors.Is(err, fs.ErrExist) {
		t.Errorf("begin a generation again: %v", err)
	}
	if all, err := room.Generations(); err != nil || !slices.Equal(all, []uint32{1}) {
		t.Errorf("generations %v, %v", all, err)
	}
}

// TestBeginTooManyLinks: a socket's verdict has no number for more.
func TestBeginTooManyLinks(t *testing.T) {
	room := newRoom(t)
	o := bare
	o.Links = maxLinks + 1
	if _, err := room.Begin(1, noRules(), o); err == nil || !strings.Contains(err.Error(), "links") {
		t.Errorf("begin a generation of %d links: %v", o.Links, err)
	}
	if all, err := room.Generations(); err != nil || len(all) != 0 {
		t.Errorf("generations %v, %v", all, err)
	}
}
