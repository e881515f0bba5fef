package feature

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil/thread"
)

// In its own namespace a new netns has one device, lo, always number 1.
const loopback = 1

// inNetns runs fn in a network namespace that ends with it.
func inNetns(fn func() error) error {
	return thread.Run(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare network namespace: %w", err)
		}
		return fn()
	})
}

// qdisc asks for a queueing discipline without giving it options: a kind that
// is not there is ENOENT, one that is there does it or complains otherwise.
func qdisc(kind string) probe {
	return func() error {
		return inNetns(func() error { return asked(newQdisc(kind)) })
	}
}

func newQdisc(kind string) error {
	msg := &nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: loopback, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)}
	if kind == "clsact" || kind == "ingress" {
		msg.Parent, msg.Handle = netlink.HANDLE_CLSACT, netlink.MakeHandle(0xffff, 0)
	}
	req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// congestion asks for a congestion control as a connection does, which loads its module.
func congestion(name string) probe {
	return func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return absentIf(unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name), unix.ENOENT)
	}
}

// fqBands asks for the three bands that fq has from 6.7 on: it dumps their
// weights.
func fqBands() error {
	const tcaOptions, tcaFQWeights = 2, 17
	return inNetns(func() error {
		if err := newQdisc("fq"); err != nil {
			return absentIf(err, unix.ENOENT)
		}
		req := nl.NewNetlinkRequest(unix.RTM_GETQDISC, unix.NLM_F_DUMP)
		req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: loopback})
		messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWQDISC)
		if err != nil {
			return err
		}
		for _, m := range messages {
			attrs, err := nl.ParseRouteAttr(m[nl.SizeofTcMsg:])
			if err != nil {
				return err
			}
			for _, a := range attrs {
				if a.Attr.Type != tcaOptions {
					continue
				}
				options, err := nl.ParseRouteAttr(a.Value)
				if err != nil {
					return err
				}
				for _, o := range options {
					if o.Attr.Type == tcaFQWeights {
						return nil
					}
				}
			}
		}
		return errAbsent
	})
}

func classifier(kind string) probe {
	return func() error {
		return inNetns(func() error {
			if err := newQdisc("clsact"); err != nil {
				return absentIf(fmt.Errorf("add clsact: %w", err), unix.ENOENT)
			}
			const priority, protocol = 1, 0x0300 // ETH_P_ALL, big endian
			req := nl.NewNetlinkRequest(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
			req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: loopback, Parent: netlink.HANDLE_MIN_EGRESS, Info: priority<<16 | protocol})
			req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)))
			_, err := req.Execute(unix.NETLINK_ROUTE, 0)
			return asked(err)
		})
	}
}

func action(kind string) probe {
	const newAction, actTab, actKind = 48, 1, 1 // RTM_NEWACTION, TCA_ACT_TAB, TCA_ACT_KIND
	return func() error {
		return inNetns(func() error {
			req := nl.NewNetlinkRequest(newAction, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
			req.AddData(&nl.TcActionMsg{Family: unix.AF_UNSPEC})
			tab := nl.NewRtAttr(actTab, nil)
			tab.AddRtAttr(1, nil).AddRtAttr(actKind, nl.ZeroTerminated(kind))
			req.AddData(tab)
			_, err := req.Execute(unix.NETLINK_ROUTE, 0)
			return asked(err)
		})
	}
}

// asked reads the answer to a request without options. What the kernel says
// about them shows that it knows the kind.
func asked(err error) error {
	for _, known := range []unix.Errno{unix.EINVAL, unix.EOPNOTSUPP, unix.ERANGE, unix.ENOTSUP} {
		if err == known {
			return nil
		}
	}
	return absentIf(err, unix.ENOENT)
}

func device(kind string) probe {
	return func() error {
		return inNetns(func() error {
			err := netlink.LinkAdd(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: "probe0"}, LinkType: kind})
			if err == unix.EINVAL || err == unix.ENODEV { // an option is missing (vlan, vrf): the kind is known
				return nil
			}
			return absentIf(err, unix.EOPNOTSUPP)
		})
	}
}
