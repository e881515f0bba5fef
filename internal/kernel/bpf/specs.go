package bpf

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
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
	parseBack    = sync.OnceValues(loadBack)
)

// kernelTypes are the kernel's own, to which programs are fitted. They are most of what loading
// one takes in user space, so a process reads them once.
var kernelTypes = btf.NewCache()

// copied is a spec that its caller may change.
func copied(parse func() (*ebpf.CollectionSpec, error)) (*ebpf.CollectionSpec, error) {
	spec, err := parse()
	if err != nil {
		return nil, err
	}
	return spec.Copy(), nil
}

// mapsOf are the tables of an object. They are every caller's: who changes one copies it, which takes
// a thousandth of copying the object.
func mapsOf(parse func() (*ebpf.CollectionSpec, error)) (map[string]*ebpf.MapSpec, error) {
	spec, err := parse()
	if err != nil {
		return nil, err
	}
	return spec.Maps, nil
}
