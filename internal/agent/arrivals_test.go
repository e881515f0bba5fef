package agent

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/testutil"
)

// arrivals returns a function that says what a namespace received at each of some ports over
// a time, the same for all, in Mbit/s on the wire: of TCP by its sockets, of UDP by
// nftables. Datagrams are not coalesced, so each is counted with its own headers.
func arrivals(t *testing.T, ns *testutil.Namespace, ports ...int) func(over time.Duration) []float64 {
	t.Helper()
	testutil.Needs(t, "nft")
	rules := []string{"add table inet arrivals", "add chain inet arrivals in { type filter hook input priority 0; }"}
	for _, port := range ports {
		rules = append(rules, fmt.Sprintf("add counter inet arrivals p%d", port),
			fmt.Sprintf("add rule inet arrivals in udp dport %d counter name p%[1]d", port))
	}
	ns.Output("nft", strings.Join(rules, "; "))
	look := func() (at time.Time, bytes map[int]float64) {
		bytes = map[int]float64{}
		at = time.Now()
		for port, n := range streamed(t, ns, localPort) {
			bytes[port] += n * segmentWire
		}
		for port, n := range datagramsTo(t, ns) {
			bytes[port] += n
		}
		return at, bytes
	}
	look() // the first time its programs have to be loaded
	return func(over time.Duration) []float64 {
		begin, before := look()
		time.Sleep(over)
		end, after := look()
		rates := make([]float64, len(ports))
		for i, port := range ports {
			rates[i] = (after[port] - before[port]) * 8 / 1e6 / end.Sub(begin).Seconds()
		}
		return rates
	}
}

// datagramsTo is what has come to the ports of [arrivals] by UDP, in bytes on the wire.
func datagramsTo(t *testing.T, ns *testutil.Namespace) map[int]float64 {
	t.Helper()
	const ethernet = 14
	var list struct {
		All []struct {
			Counter struct {
				Name           string
				Packets, Bytes float64
			} `json:"counter"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal([]byte(ns.Output("nft", "--json", "list", "counters", "table", "inet", "arrivals")), &list); err != nil {
		t.Fatal(err)
	}
	bytes := map[int]float64{}
	for _, c := range list.All {
		if port, ok := strings.CutPrefix(c.Counter.Name, "p"); ok {
			n, _ := strconv.Atoi(port)
			bytes[n] += c.Counter.Bytes + ethernet*c.Counter.Packets
		}
	}
	return bytes
}
