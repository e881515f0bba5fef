package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
)

// A Host is one network namespace of a Net.
type Host struct {
	Name string

	file   *os.File
	handle *netlink.Handle // its socket stays in the namespace
}

func newHost(name string) (*Host, error) {
	file, err := newNetns()
	if err != nil {
		return nil, fmt.Errorf("make host %s: %w", name, err)
	}
	handle, err := netlink.NewHandleAt(netns.NsHandle(file.Fd()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make host %s: %w", name, err), file.Close())
	}
	h := &Host{Name: name, file: file, handle: handle}
	if err := h.setUp(); err != nil {
		return nil, errors.Join(fmt.Errorf("make host %s: %w", name, err), h.close())
	}
	return h, nil
}

// setUp makes TCP forget: a saved ssthresh of one run would shape the next.
func (h *Host) setUp() error {
	lo, err := h.handle.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := h.handle.LinkSetUp(lo); err != nil {
		return err
	}
	return h.sysctl("net/ipv4/tcp_no_metrics_save", "1")
}

// Netns is a path that leads into the host's namespace, for this process and
// for others: setns, nsenter --net=PATH. It is good until the Net is closed.
func (h *Host) Netns() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), h.file.Fd()) }

// do runs fn inside of the host; what it hands to other goroutines is outside.
func (h *Host) do(fn func() error) error { return host.InNetns(h.Netns(), fn) }

// sysctl sets a parameter of the host by its path below /proc/sys.
func (h *Host) sysctl(path, value string) error {
	err := h.do(func() error {
		return os.WriteFile(filepath.Join("/proc/sys", path), []byte(value), 0o644)
	})
	if err != nil {
		return fmt.Errorf("set %s of host %s: %w", path, h.Name, err)
	}
	return nil
}

// Forward makes a router of the host.
func (h *Host) Forward() error {
	if err := h.sysctl("net/ipv4/ip_forward", "1"); err != nil {
		return err
	}
	// A kernel without IPv6 has no such parameter, and nothing to forward.
	if err := h.sysctl("net/ipv6/conf/all/forwarding", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Route sends what is for a prefix through a gateway on a wire of the host.
func (h *Host) Route(to netip.Prefix, via netip.Addr) error {
	if err := h.handle.RouteAdd(&netlink.Route{Dst: ipNet(to), Gw: via.AsSlice()}); err != nil {
		return fmt.Errorf("route %s via %s on host %s: %w", to, via, h.Name, err)
	}
	return nil
}

func (h *Host) close() error {
	h.handle.Close()
	if err := h.file.Close(); err != nil {
		return fmt.Errorf("close host %s: %w", h.Name, err)
	}
	return nil
}
