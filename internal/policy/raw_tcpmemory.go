package policy

import "go.yaml.in/yaml/v4"

// rawTCPMemory is a bound on what the TCP sockets of a workload hold.
type rawTCPMemory struct {
	key      scalar
	keys     keySet
	max      scalar
	soft     scalar
	whenFull scalar
	via      scalar
}

func (r *reader) rawTCPMemory(key scalar, n *yaml.Node) rawTCPMemory {
	raw := rawTCPMemory{key: key}
	raw.keys = r.block(key, n, "tcp-memory", tcpMemoryHelp, tcpMemoryKeys[:], func(name string, key scalar, n *yaml.Node) {
		switch name {
		case "max":
			raw.max = r.value(key, n, "max")
		case "soft":
			raw.soft = r.value(key, n, "soft")
		case "when-full":
			raw.whenFull = r.value(key, n, "when-full")
		case "via":
			raw.via = r.value(key, n, "via")
		}
	})
	return raw
}
