package netprio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// watchPause is how long Watch collects link messages before it looks at the
// maps, so that a storm of them costs little.
const watchPause = 10 * time.Millisecond

// Watch gives interfaces that appear, or change their name, their entries in
// all groups of the last Apply, until ctx ends, which is its error, or Remove
// was called, which is none. For some 10 ms a new interface is without
// priorities. It calls ready, if not nil, once every interface that is there
// has its entries. Groups that others removed meanwhile it leaves alone. It
// must stay in the namespaces in which it was called: on a locked thread.
func (t Tree) Watch(ctx context.Context, ready func()) error {
	if err := checkNetns(); err != nil {
		return fmt.Errorf("watch links: %w", err)
	}
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return fmt.Errorf("watch links: %w", err)
	}
	defer conn.Close()
	// First join, then look: what appears in between is not missed.
	if err := conn.JoinGroup(unix.RTNLGRP_LINK); err != nil {
		return fmt.Errorf("watch links: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		watching, err := t.refresh()
		if err != nil {
			return fmt.Errorf("watch links: %w", err)
		}
		if !watching {
			return nil
		}
		if ready != nil {
			ready()
			ready = nil
		}
		if err := await(ctx, conn); err != nil {
			return fmt.Errorf("watch links: %w", err)
		}
	}
}

// await returns when links have changed. What the messages say is not looked
// at: the maps show which interfaces lack an entry, also after messages were
// lost (ENOBUFS).
func await(ctx context.Context, conn *netlink.Conn) error {
	var deadline time.Time // none, until the first message
	for {
		if err := conn.SetReadDeadline(deadline); err != nil {
			return err
		}
		// Looked at after the deadline was set: an end of ctx from here on sets
		// another one.
		if err := ctx.Err(); err != nil {
			return err
		}
		_, err := conn.Receive()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil && !errors.Is(err, unix.ENOBUFS):
			return err
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(watchPause)
		}
	}
}

// refresh writes the entries that are missing. It reports false if there is
// nothing to keep any more.
func (t Tree) refresh() (watching bool, err error) {
	if _, err := os.Stat(t.memoryPath()); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = t.exclusively(func() error {
		m, known, err := t.load()
		if err != nil || !known {
			return err
		}
		mount, err := findMount(m.Mount)
		if err != nil || mount == "" {
			return err
		}
		watching = true
		for _, name := range slices.Sorted(maps.Keys(m.Want)) {
			err := writeMap(mount+t.group(name), func(link string) uint32 { return entry(m.Want[name], link) })
			if err != nil && !absent(err) {
				return err
			}
		}
		return nil
	})
	return watching, err
}
