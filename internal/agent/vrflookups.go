package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// dnsPatience is how long a name server may take to answer.
const dnsPatience = 2 * time.Second

// A Resolver says where the files are that lookups go by: below a directory, which is / on a host.
type Resolver struct{ Root string }

// VRFFile is the resolv.conf of what runs in a VRF, where it has one of its own.
func (r Resolver) VRFFile(vrf string) string {
	return filepath.Join(r.Root, "/etc/weir/vrf", vrf, "resolv.conf")
}

// OwnFile is VRFFile where there is one, else "".
func (r Resolver) OwnFile(vrf string) string {
	path := r.VRFFile(vrf)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// upstreamFile is systemd-resolved's own: whom it asks.
const upstreamFile = "/run/systemd/resolve/resolv.conf"

// VRFLookups finds out how names are looked up in each of some VRFs, by asking the servers that
// are asked there. netns is where the VRFs are, as for [Agent.VRFs].
func (a *Agent) VRFLookups(ctx context.Context, r Resolver, netns string, vrfs []plan.VRFDevice) (map[string]plan.VRFLookups, error) {
	if netns == "" {
		netns = a.Scope.Netns
	}
	found := map[string]plan.VRFLookups{}
	for _, v := range vrfs {
		l, err := r.lookups(v.Name, netns)
		if err != nil {
			return nil, err
		}
		if err := askAll(netns, v.Name, l.Servers); err != nil {
			return nil, err
		}
		found[v.Name] = l
	}
	return found, listeners(ctx, netns, found)
}

func (r Resolver) lookups(vrf, netns string) (plan.VRFLookups, error) {
	l := plan.VRFLookups{File: r.VRFFile(vrf), Own: true, Servers: []plan.VRFServer{}, Upstream: []netip.Addr{}}
	text, err := os.ReadFile(l.File)
	if errors.Is(err, fs.ErrNotExist) {
		l.Own = false
		text, l.File, err = r.hostFile(netns)
	}
	if err != nil {
		return l, fmt.Errorf("read name servers: %w", err)
	}
	servers, _ := plan.ParseResolvConf(string(text))
	for _, s := range servers[:min(len(servers), plan.MaxServers)] {
		l.Servers = append(l.Servers, plan.VRFServer{Address: s})
	}
	upstream, err := os.ReadFile(filepath.Join(r.Root, upstreamFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("read name servers: %w", err)
	}
	if servers, _ := plan.ParseResolvConf(string(upstream)); servers != nil {
		l.Upstream = servers
	}
	nsswitch, err := os.ReadFile(filepath.Join(r.Root, "/etc/nsswitch.conf"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("read name services: %w", err)
	}
	if _, err := os.Stat(filepath.Join(r.Root, "/run/systemd/resolve/io.systemd.Resolve")); err == nil {
		l.Varlink = plan.AsksVarlink(string(nsswitch))
	}
	return l, nil
}

// hostFile reads the resolv.conf that holds outside of VRFs, of a network namespace if that has
// one of its own. No file is an empty one.
func (r Resolver) hostFile(netns string) ([]byte, string, error) {
	paths := []string{"/etc/resolv.conf"}
	if name, ok := strings.CutPrefix(netns, "/run/netns/"); ok {
		paths = slices.Insert(paths, 0, "/etc/netns/"+name+"/resolv.conf")
	}
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join(r.Root, path))
		if !errors.Is(err, fs.ErrNotExist) {
			return text, path, err
		}
	}
	return nil, "/etc/resolv.conf", nil
}

// askAll asks servers from inside of a VRF, all at once.
func askAll(netns, vrf string, servers []plan.VRFServer) error {
	questions := make([]host.DNSQuestion, len(servers))
	failures := make([]error, len(servers))
	err := host.InNetns(netns, func() error {
		for i, s := range servers {
			questions[i], failures[i] = host.AskDNS(vrf, s.Address)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	for i := range servers {
		if failures[i] == nil {
			wait.Go(func() { failures[i] = questions[i].Answered(dnsPatience) })
		}
	}
	wait.Wait()
	for i, err := range failures {
		servers[i].Answers, servers[i].Why = err == nil, silence(err)
	}
	return nil
}

// silence says what became of a question.
func silence(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, unix.ETIMEDOUT):
		return fmt.Sprintf("no answer within %s", dnsPatience)
	case errors.Is(err, unix.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, unix.ENETUNREACH), errors.Is(err, unix.EHOSTUNREACH):
		return "no route leads there from inside of the VRF"
	case errors.Is(err, fs.ErrPermission):
		return "not known: this user may not ask from inside of the VRF"
	}
	return err.Error()
}

// listeners finds out who listens at the servers that are addresses of loopback.
func listeners(ctx context.Context, netns string, lookups map[string]plan.VRFLookups) error {
	return host.InNetns(netns, func() error {
		sockets, err := workload.PortSockets(ctx, unix.IPPROTO_UDP, 53)
		if err != nil {
			return err
		}
		for _, l := range lookups {
			for i := range l.Servers {
				s := &l.Servers[i]
				if s.Answers || !s.Address.IsLoopback() {
					continue
				}
				for _, socket := range sockets {
					at := socket.Local.Addr()
					if at != s.Address && !at.IsUnspecified() || socket.Remote.IsValid() {
						continue
					}
					if err := hears(ctx, s, socket); err != nil {
						return err
					}
					break
				}
			}
		}
		return nil
	})
}

// hears notes whose a socket is that listens at a server's address.
func hears(ctx context.Context, s *plan.VRFServer, socket workload.SocketEntry) error {
	owners, err := workload.Owners(ctx, socket.Inode)
	if err != nil {
		return err
	}
	s.Listener = "a program"
	if len(owners) > 0 {
		s.Listener = owners[0].Name
	}
	if socket.Device == 0 {
		return nil
	}
	device, err := net.InterfaceByIndex(int(socket.Device))
	if err != nil {
		return nil // it has gone since
	}
	s.Device = device.Name
	return nil
}
