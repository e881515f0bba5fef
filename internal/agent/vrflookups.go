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

// ErrNoServer says that no name server answers in a VRF.
var ErrNoServer = errors.New("no name server answers in the VRF")

// ErrForeignFile says that a file is somebody else's, and is left as it is.
var ErrForeignFile = errors.New("not made by Weir, and left as it is")

// FixLookups gives a VRF a resolv.conf of its own: with the servers that are given, or else with
// those of systemd-resolved, or else of the host's file, that answer in the VRF. It returns the servers.
func (a *Agent) FixLookups(r Resolver, netns, vrf string, given []netip.Addr) ([]netip.Addr, error) {
	if netns == "" {
		netns = a.Scope.Netns
	}
	l, err := r.lookups(vrf, netns)
	if err != nil {
		return nil, err
	}
	text, _, err := r.hostFile(netns)
	if err != nil {
		return nil, fmt.Errorf("read name servers: %w", err)
	}
	servers, rest := plan.ParseResolvConf(string(text))
	if len(l.Upstream) > 0 {
		servers = l.Upstream
	}
	if len(given) > 0 {
		servers = given
	}
	asked := make([]plan.VRFServer, 0, len(servers))
	for _, s := range servers {
		asked = append(asked, plan.VRFServer{Address: s})
	}
	if err := askAll(netns, vrf, asked); err != nil {
		return nil, err
	}
	var answer []netip.Addr
	var why []string
	for _, s := range asked {
		if s.Answers {
			answer = append(answer, s.Address)
		} else {
			why = append(why, fmt.Sprintf("%s: %s", s.Address, s.Why))
		}
	}
	if len(answer) == 0 {
		if len(why) == 0 {
			why = []string{"none is known"}
		}
		return nil, fmt.Errorf("%w (%s)", ErrNoServer, strings.Join(why, "; "))
	}
	answer = answer[:min(len(answer), plan.MaxServers)]
	return answer, writeOwn(r.VRFFile(vrf), plan.ResolvConf(answer, rest))
}

// writeOwn writes a file of ours in one step.
func writeOwn(path, text string) error {
	was, err := os.ReadFile(path)
	if err == nil && !plan.MadeResolvConf(string(was)) {
		return fmt.Errorf("write %s: %w", path, ErrForeignFile)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write name servers: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write name servers: %w", err)
	}
	part := path + ".part"
	if err := os.WriteFile(part, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write name servers: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write name servers: %w", err)
	}
	return nil
}

// UndoLookups removes what [Agent.FixLookups] made for a VRF, or with "" for all, and returns the paths.
// Files of others are left, and what is absent is fine.
func (r Resolver) UndoLookups(vrf string) ([]string, error) {
	pattern := r.VRFFile("*")
	if vrf != "" {
		pattern = r.VRFFile(vrf)
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("list name servers: %w", err)
	}
	var removed []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return removed, fmt.Errorf("remove name servers: %w", err)
		}
		if !plan.MadeResolvConf(string(text)) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return removed, fmt.Errorf("remove name servers: %w", err)
		}
		removed = append(removed, path)
		// The directories go with the last file in them.
		for dir := filepath.Dir(path); dir != filepath.Join(r.Root, "/etc"); dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break
			}
		}
	}
	return removed, nil
}
