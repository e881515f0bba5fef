package policy

import "go.yaml.in/yaml/v4"

// The raw types are a policy as it is written: every value a text with its
// place, whatever was misspelled already reported and left out. The keys of a
// record tell what is missing from what is wrong.

type rawPolicy struct {
	keys      keySet
	version   scalar
	links     []entry // read one by one, to keep no more than one in memory
	linksRead bool    // links was a mapping
	vrfs      []entry
	vrfsRead  bool // likewise
	workloads []entry
	fallback  rawContract // default:
}

type rawLink struct {
	name, rate, scheduler, adopt scalar
	egress, ingress              rawBandwidth
}

type rawWorkload struct {
	name     scalar
	keys     keySet
	match    []rawSelector
	contract rawContract
	via      scalar
}

type rawContract struct {
	keys      keySet
	priority  rawPriority
	egress    rawBandwidth
	toward    []rawToward // items of egress that are of prefixes
	ingress   rawBandwidth
	tcpMemory rawTCPMemory
	vrf       scalar
}

// rawPriority is one level, or a level by link.
type rawPriority struct {
	key     scalar
	whole   scalar
	perLink []rawLevel
}

type rawLevel struct{ link, level scalar }

// The keys of each mapping, in the order in which they are shown. They are
// constants: arrays, sliced where they are used.
var (
	policyKeys    = [...]string{"version", "links", "vrfs", "workloads", "default"}
	linkKeys      = [...]string{"rate", "scheduler", "adopt", "egress", "ingress"}
	workloadKeys  = [...]string{"match", "priority", "egress", "ingress", "tcp-memory", "vrf", "via"}
	promiseKeys   = workloadKeys[1:6]
	contractKeys  = workloadKeys[1:2] // of default:, which has no limits
	egressKeys    = [...]string{"max", "burst", "pps", "method", "min", "links", "weight"}
	eachKeys      = egressKeys[:5]                                                               // of one link below it
	heldKeys      = egressKeys[:4]                                                               // of ingress, and of a link itself
	limitKeys     = egressKeys[:3]                                                               // what of these is a limit
	itemKeys      = [...]string{"to", "max", "burst", "pps", "method", "min", "links", "weight"} // of an item of egress
	tcpMemoryKeys = [...]string{"max", "soft", "when-full", "via"}
	selectorKeys  = [...]string{"pid", "cgroup", "unit", "user", "exe", "port", "protocol", "cidr", "dscp"}
	processKeys   = selectorKeys[:5]
)

func (r *reader) rawPolicy(n *yaml.Node) (raw rawPolicy) {
	raw.keys = r.record(n, "a policy", policyKeys[:], func(name string, key scalar, n *yaml.Node) {
		switch name {
		case "version":
			raw.version = r.value(key, n, "version")
		case "links":
			raw.links, raw.linksRead = r.section(key, n, "links")
		case "vrfs":
			raw.vrfs, raw.vrfsRead = r.section(key, n, "vrfs")
		case "workloads":
			raw.workloads, _ = r.section(key, n, "workloads")
		case "default":
			if r.filled(key, n, "default") {
				raw.fallback.keys = r.record(n, "default", contractKeys, func(_ string, key scalar, n *yaml.Node) {
					raw.fallback.priority = r.rawPriority(key, n)
				})
			}
		}
	})
	return raw
}

// filled reports what has nothing behind its key.
func (r *reader) filled(key scalar, n *yaml.Node, what string) bool {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" && r.simple(n) {
		r.report(key.span, what+" has nothing in it", "fill it, or leave the key out")
		return false
	}
	return true
}

// section reads the named entries of links or workloads.
func (r *reader) section(key scalar, n *yaml.Node, what string) (entries []entry, ok bool) {
	if !r.filled(key, n, what) {
		return nil, false
	}
	return r.mapping(n, what)
}

func (r *reader) rawLink(e entry) rawLink {
	raw := rawLink{name: e.key}
	if n := e.value; n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Anchor == "" {
		return raw // a link with nothing but defaults
	}
	r.record(e.value, "link "+quote(e.key.text), linkKeys[:], func(name string, key scalar, n *yaml.Node) {
		switch name {
		case "rate":
			raw.rate = r.value(key, n, "rate")
		case "scheduler":
			raw.scheduler = r.value(key, n, "scheduler")
		case "adopt":
			raw.adopt = r.value(key, n, "adopt")
		case "egress":
			raw.egress = r.rawBandwidth(key, n, name, heldKeys)
		case "ingress":
			raw.ingress = r.rawBandwidth(key, n, name, heldKeys)
		}
	})
	return raw
}

func (r *reader) rawWorkload(e entry) rawWorkload {
	raw := rawWorkload{name: e.key}
	what := "workload " + quote(e.key.text)
	if !r.filled(e.key, e.value, what) {
		return raw
	}
	raw.keys = r.record(e.value, what, workloadKeys[:], func(name string, key scalar, n *yaml.Node) {
		switch name {
		case "match":
			raw.match = r.match(key, n)
		case "priority":
			raw.contract.priority = r.rawPriority(key, n)
		case "egress":
			raw.contract.egress, raw.contract.toward = r.rawEgress(key, n)
		case "ingress":
			raw.contract.ingress = r.rawBandwidth(key, n, name, heldKeys)
		case "tcp-memory":
			raw.contract.tcpMemory = r.rawTCPMemory(key, n)
		case "vrf":
			raw.contract.vrf = r.value(key, n, "vrf")
		case "via":
			raw.via = r.value(key, n, "via")
		}
	})
	raw.contract.keys = raw.keys
	return raw
}

func (r *reader) rawPriority(key scalar, n *yaml.Node) rawPriority {
	raw := rawPriority{key: key}
	if n.Kind != yaml.MappingNode {
		raw.whole = r.value(key, n, "priority")
		return raw
	}
	entries, ok := r.mapping(n, "priority")
	if ok && len(n.Content) == 0 {
		r.report(key.span, "priority names no link", "0 to 15, or a level by link: {eth0: 12, default: 4}")
	}
	for _, e := range entries {
		if e.twice {
			continue
		}
		raw.perLink = append(raw.perLink, rawLevel{e.key, r.value(e.key, e.value, "the priority of a link")})
	}
	return raw
}

// values reads one value, or a list of them.
func (r *reader) values(key scalar, n *yaml.Node, what string) []scalar {
	if n.Kind == yaml.SequenceNode {
		return r.valueList(key, n, what+" is an empty list", "name a prefix, or leave it out")
	}
	return []scalar{r.value(key, n, what)}
}

// valueList reads a list of values, and reports an empty one.
func (r *reader) valueList(key scalar, n *yaml.Node, empty, help string) []scalar {
	items, ok := r.list(n, key.text, "")
	if ok && len(items) == 0 {
		r.report(r.span(n), empty, help)
	}
	values := make([]scalar, 0, len(items))
	for _, item := range items {
		values = append(values, r.value(key, item, key.text))
	}
	return values
}
