package bpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Room is where one scope's programs and tables are pinned.
//
//	identities verdicts arrivals tasks
//	                             what is remembered of sockets and processes
//	budgets departures turns paces windows handshakes
//	                             the limits, and how connections below them are held back
//	pools holdings               what sockets hold of TCP memory
//	socket_create socket_ingress pace window tcp_memory tcp_asks refuse_*
//	                             the attachments to the scope's cgroup
//	back                         the attachment to where acknowledgements come back that waited
//	links/IFINDEX                the attachment to each link (tcx)
//	ingress/IFINDEX              the one to the ingress of those that limit it
//	g7/                          generation 7: its tables, its births
//	g7/IFINDEX/                  its program and tables of one link
type Room struct {
	Dir    string // below a bpffs
	Cgroup string // v2 directory whose processes' sockets are Weir's concern
}

func (r Room) generationDir(n uint32) string { return filepath.Join(r.Dir, fmt.Sprintf("g%d", n)) }

func (r Room) linksDir() string { return filepath.Join(r.Dir, "links") }

func (r Room) ingressDir() string { return filepath.Join(r.Dir, "ingress") }

func (r Room) ingressPin(index int) string { return filepath.Join(r.ingressDir(), strconv.Itoa(index)) }

func (r Room) linkPin(index int) string { return filepath.Join(r.linksDir(), strconv.Itoa(index)) }

func (r Room) socketPin() string { return filepath.Join(r.Dir, "socket_create") }

func (r Room) receivePin() string { return filepath.Join(r.Dir, "socket_ingress") }

func (r Room) pacePin() string { return filepath.Join(r.Dir, "pace") }

func (r Room) memoryPin(program string) string { return filepath.Join(r.Dir, program) }

// VerdictsPin is where the table is that says under which contract sockets are.
func (r Room) VerdictsPin() string { return filepath.Join(r.Dir, linkEgressMapVerdicts) }

func (r Room) backPin() string { return filepath.Join(r.Dir, "back") }

func (r Room) windowPin() string { return filepath.Join(r.Dir, "window") }

// Generations lists the generations that are pinned, complete or not, oldest
// first.
func (r Room) Generations() ([]uint32, error) {
	entries, err := os.ReadDir(r.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list generations: %w", err)
	}
	var all []uint32
	for _, e := range entries {
		if n, ok := strings.CutPrefix(e.Name(), "g"); ok {
			if n, err := strconv.ParseUint(n, 10, 32); err == nil {
				all = append(all, uint32(n))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// RemoveGeneration removes a generation. Programs that are still attached go on:
// an attachment holds its program, a program its tables.
func (r Room) RemoveGeneration(n uint32) error {
	if err := os.RemoveAll(r.generationDir(n)); err != nil {
		return fmt.Errorf("remove generation %d: %w", n, err)
	}
	return nil
}

// Remove takes everything of the scope out of the kernel. Attachments are taken
// off and not only unpinned: somebody who has one open would keep it. Removing
// what is absent succeeds, and another version's pins are removed like one's own.
func (r Room) Remove() error {
	err := errors.Join(detachAll(r.linksDir()), detachAll(r.ingressDir()))
	if err := errors.Join(err, removePinned(r.socketPin()), removePinned(r.pacePin()), removePinned(r.receivePin()), removePinned(r.windowPin()), r.DetachMemory(), os.RemoveAll(r.Dir)); err != nil {
		return fmt.Errorf("remove pins: %w", err)
	}
	return nil
}
