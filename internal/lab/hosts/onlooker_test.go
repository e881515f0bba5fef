package hosts

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-net/weir/internal/testutil"
)

// TestOnlookers asks the kernel, and bpftool, for each program while it is there, and once it is gone, what arrives meanwhile, and what
// is kept with the socket that sent it. A bpftool may be too old to list what stands at tcx.
func TestOnlookers(t *testing.T) {
	testutil.Needs(t, "tcx", "sk_storage", "bpftool")
	n := testNet(t)
	near := Plug{Host: newTestHost(t, n, "a"), Device: "line"}
	far := Plug{Host: newTestHost(t, n, "b"), Device: "far"}
	near.Addresses, far.Addresses = prefixes("10.1.0.1/24"), prefixes("10.1.0.2/24")
	if err := Wire(near, far, 1); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Onlooker{Idle, Asking} {
		t.Run(o.name, func(t *testing.T) {
			failed := errors.New("failed")
			err := near.Through(o, func() error {
				there := onlookers(t, near)
				if len(there) != 1 {
					t.Fatalf("%d programs", len(there))
				}
				program, err := ebpf.NewProgramFromID(there[0].ID)
				if err != nil {
					t.Fatal(err)
				}
				defer program.Close()
				looksOn(t, o, near, far, program)
				return failed
			})
			if !errors.Is(err, failed) {
				t.Errorf("got %v, want what came of it meanwhile", err)
			}
			if there := onlookers(t, near); len(there) > 0 {
				t.Errorf("%d programs stay", len(there))
			}
		})
	}
}

// looksOn sends a datagram past an onlooker.
func looksOn(t *testing.T, o Onlooker, near, far Plug, program *ebpf.Program) {
	t.Helper()
	info, err := program.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	if got := testutil.Output(t, testutil.Tool(t, "bpftool"), "prog", "show", "id", fmt.Sprint(id)); !strings.Contains(got, "sched_cls  name "+o.name+" ") {
		t.Errorf("there is %s", got)
	}
	ids, _ := info.MapIDs()
	if !o.asks {
		if len(ids) > 0 {
			t.Errorf("it has tables: %v", ids)
		}
		arrives(t, near, far)
		return
	}
	if len(ids) != 1 {
		t.Fatalf("it has tables: %v", ids)
	}
	kept, err := ebpf.NewMapFromID(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	var value uint64
	if err := kept.Lookup(uint32(arrives(t, near, far).Fd()), &value); err != nil {
		t.Errorf("nothing is kept with the socket that sent: %v", err)
	}
}

// arrives sends a datagram and sees it arrive. It returns the socket that sent it.
func arrives(t *testing.T, near, far Plug) (socket *os.File) {
	t.Helper()
	var receiver net.PacketConn
	err := far.Host.do(func() (err error) {
		receiver, err = net.ListenPacket("udp", "10.1.0.2:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	err = near.Host.do(func() error {
		c, err := net.Dial("udp", receiver.LocalAddr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("x")); err != nil {
			return err
		}
		socket, err = c.(*net.UDPConn).File()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	if err := receiver.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := receiver.ReadFrom(make([]byte, 1)); err != nil {
		t.Errorf("what was sent did not arrive: %v", err)
	}
	return socket
}

// onlookers are the programs that see what a device sends.
func onlookers(t *testing.T, p Plug) []link.AttachedProgram {
	t.Helper()
	device, err := p.link()
	if err != nil {
		t.Fatal(err)
	}
	var there *link.QueryResult
	err = p.Host.do(func() (err error) {
		there, err = link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index, Attach: ebpf.AttachTCXEgress})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there.Programs
}
