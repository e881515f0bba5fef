package host

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// Everything that ip and tc say of the devices of a namespace is what Links
// says.
func TestLinksAgreeWithIPAndTC(t *testing.T) {
	testutil.Needs(t, "veth link", "ifb link", "htb qdisc")
	testutil.Tool(t, "ip")
	testutil.Tool(t, "tc")
	ns := testutil.Netns(t)
	end, _ := testutil.Veth(t, ns, testutil.NewNamespace(t), testutil.VethOptions{})
	add(t, "ip", "link", "add", "ifb7", "type", "ifb")
	tun := addTun(t)
	add(t, "tc", "qdisc", "add", "dev", end.Name, "root", "handle", "7e1f:", "htb")
	add(t, "tc", "qdisc", "add", "dev", end.Name, "clsact")

	links := read(t)

	var devices []struct {
		Index  int      `json:"ifindex"`
		Name   string   `json:"ifname"`
		Type   string   `json:"link_type"`
		Flags  []string `json:"flags"`
		Queues int      `json:"num_tx_queues"`
		Qdisc  string   `json:"qdisc"`
	}
	parse(t, testutil.Output(t, "ip", "-j", "-d", "link"), &devices)
	if len(devices) != len(links) {
		t.Errorf("%d links, ip shows %d", len(links), len(devices))
	}
	for _, d := range devices {
		l, ok := links[d.Name]
		if !ok {
			t.Errorf("%s is missing", d.Name)
			continue
		}
		if l.Index != d.Index || l.Ifb != (d.Name == "ifb7") || l.TXQueues != d.Queues || l.Up != slices.Contains(d.Flags, "UP") || l.Root.Kind != d.Qdisc {
			t.Errorf("%s: got %+v, ip shows %+v", d.Name, l, d)
		}
		if want := d.Type == "ether" || d.Name == "lo"; l.Ethernet != want {
			t.Errorf("%s: Ethernet is %v, ip shows %s", d.Name, l.Ethernet, d.Type)
		}
	}
	want := plan.Qdisc{Kind: "htb", Handle: plan.RootHandle << 16}
	if got := links[end.Name].Root; got != want {
		t.Errorf("root of %s: got %+v, want %+v", end.Name, got, want)
	}
	for name, driver := range map[string]string{"lo": "", end.Name: "veth", tun: "tun"} {
		if name == "" {
			continue
		}
		if got := links[name].Driver; got != driver {
			t.Errorf("driver of %s: got %q, want %q", name, got, driver)
		}
	}
}

func TestLinksOfTheNamespaceEntered(t *testing.T) {
	testutil.Needs(t, "veth link")
	ns := testutil.NewNamespace(t)
	end, _ := testutil.Veth(t, ns, testutil.NewNamespace(t), testutil.VethOptions{})
	var links map[string]plan.LinkFacts
	err := InNetns(ns.Path(), func() (err error) {
		links, err = Links(context.Background())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := links[end.Name]; !ok || len(links) != 2 {
		t.Errorf("got %v", links)
	}
}

func TestLinksSpeedOfDriversWithoutAWire(t *testing.T) {
	testutil.Needs(t, "veth link")
	ns := testutil.Netns(t)
	end, _ := testutil.Veth(t, ns, testutil.NewNamespace(t), testutil.VethOptions{})
	tun := addTun(t)
	links := read(t)
	for _, name := range []string{end.Name, tun, "lo"} {
		if got := links[name].Speed; got != 0 {
			t.Errorf("speed of %s: got %d, want it unknown", name, got)
		}
	}
}

// What stands on a device without a wire has no speed either, whatever its
// driver passes on.
func TestLinksSpeedAboveDriversWithoutAWire(t *testing.T) {
	testutil.Needs(t, "veth link", "ethtool")
	ns := testutil.Netns(t)
	end, _ := testutil.Veth(t, ns, testutil.NewNamespace(t), testutil.VethOptions{})
	for name, make := range map[string][]string{
		"bridge": {"link add br7 up type bridge", "link set " + end.Name + " master br7"},
		"vlan":   {"link add link " + end.Name + " name v7 up type vlan id 7"},
	} {
		t.Run(name, func(t *testing.T) {
			testutil.Needs(t, name+" link")
			ns.Enter(t)
			for _, args := range make {
				add(t, "ip", strings.Fields(args)...)
			}
			device := map[string]string{"bridge": "br7", "vlan": "v7"}[name]
			if got := read(t)[device].Speed; got != 0 {
				t.Errorf("speed of %s: got %d, want it unknown; ethtool:\n%s", device, got, testutil.Output(t, "ethtool", device))
			}
		})
	}
}

// The room for queues is one for every CPU on a veth that was made without a
// number; the queues in use are what counts.
func TestLinksCountQueuesInUse(t *testing.T) {
	testutil.Needs(t, "veth link", "mq qdisc", "2 CPUs")
	testutil.Netns(t)
	add(t, "ip", "link", "add", "some", "numtxqueues", "4", "type", "veth", "peer", "name", "one", "numrxqueues", "4")
	for _, name := range []string{"some", "one"} {
		add(t, "ip", "link", "set", name, "up")
	}
	if got := read(t)["some"].TXQueues; got != 4 {
		t.Errorf("by the driver's channels: got %d, want 4", got)
	}
	add(t, "tc", "qdisc", "add", "dev", "some", "root", "handle", "1:", "mq")
	var below []struct{ Parent string }
	parse(t, testutil.Output(t, "tc", "-j", "qdisc", "show", "dev", "some"), &below)
	root, err := roots()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := root[read(t)["some"].Index].queues, len(below)-1; got != want || got != 4 {
		t.Errorf("by the mq root: got %d, tc shows %d", got, want)
	}
}

func TestQueues(t *testing.T) {
	for _, tt := range []struct{ room, below, channels, want int }{
		{1, 0, 0, 1}, {8, 0, 0, 8}, {8, 4, 0, 4}, {8, 0, 2, 2}, {8, 4, 2, 4},
		{1, 0, 16, 1}, // shared channels of a device with a single queue
	} {
		if got := queues(tt.room, tt.below, tt.channels); got != tt.want {
			t.Errorf("room %d, below %d, channels %d: got %d, want %d", tt.room, tt.below, tt.channels, got, tt.want)
		}
	}
}

func TestDefaultRootIsTheKernelsOwn(t *testing.T) {
	testutil.Needs(t, "ifb link", "pfifo_fast qdisc")
	testutil.Netns(t)
	add(t, "ip", "link", "add", "ifb7", "type", "ifb")
	if got := read(t)["ifb7"].Root; got != (plan.Qdisc{Kind: "noop", Default: true}) {
		t.Errorf("never up: %+v", got)
	}
	add(t, "ip", "link", "set", "ifb7", "up")
	own := read(t)["ifb7"].Root
	if !own.Default || own.Kind == "noop" {
		t.Errorf("up: %+v", own)
	}
	add(t, "tc", "qdisc", "replace", "dev", "ifb7", "root", "bfifo")
	if got := read(t)["ifb7"].Root; got.Default || got.Kind != "bfifo" || got.Handle == 0 {
		t.Errorf("replaced: %+v", got)
	}
	add(t, "tc", "qdisc", "del", "dev", "ifb7", "root")
	if got := read(t)["ifb7"].Root; got != own {
		t.Errorf("removed: got %+v, want %+v again", got, own)
	}
}

func TestLinksEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Links(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func read(t *testing.T) map[string]plan.LinkFacts {
	t.Helper()
	links, err := Links(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// addTun adds a device without an Ethernet header and returns its name, "" where
// the kernel has no tun driver: the rest of a test can do without.
func addTun(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return ""
	}
	add(t, "ip", "tuntap", "add", "tun7", "mode", "tun")
	return "tun7"
}

func add(t *testing.T, name string, args ...string) {
	t.Helper()
	testutil.Tool(t, name)
	testutil.Output(t, name, args...)
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}
