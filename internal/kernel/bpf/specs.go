package bpf

import (
	"sync"

	"github.com/cilium/ebpf"
)

// The objects are parsed once in a process: a command opens the same tables
// several times, and weir set has milliseconds.
var (
	parseEgress  = sync.OnceValues(loadLinkEgress)
	parseSockets = sync.OnceValues(loadSocketCreate)
	parseBirths  = sync.OnceValues(loadBirths)
	parseIngress = sync.OnceValues(loadLinkIngress)
	parseReceive = sync.OnceValues(loadSocketIngress)
	parseLimit   = sync.OnceValues(loadLimit)
	parseDepart  = sync.OnceValues(loadDepart)
	parsePace    = sync.OnceValues(loadPace)
	parseWindow  = sync.OnceValues(loadWindow)
	parseMemory  = sync.OnceValues(loadTcpMemory)
	parseRefuse  = sync.OnceValues(loadTcpRefuse)
	parseRelimit = sync.OnceValues(loadRelimit)
	parseRetime  = sync.OnceValues(loadRetime)
)

// copied is a spec that its caller may change.
func copied(parse func() (*ebpf.CollectionSpec, error)) (*ebpf.CollectionSpec, error) {
	spec, err := parse()
	if err != nil {
		return nil, err
	}
	return spec.Copy(), nil
}
