package policy

import "go.yaml.in/yaml/v4"

// rawBandwidth is a limit: of a workload, at egress with what it gets at least and with
// those of single links, or of a link.
type rawBandwidth struct {
	key    scalar
	keys   keySet
	max    scalar
	burst  scalar
	method scalar // of a workload, at egress, of max
	pps    scalar
	min    scalar         // of a workload, at egress
	weight scalar         // of a workload, at egress, in limits that it shares
	links  []rawBandwidth // each with the link's name as its key
}

// rawToward is an item of a workload's egress that is of some prefixes.
type rawToward struct {
	rawBandwidth
	to []scalar
}

// rawEgress reads what a workload may send: a mapping, or a list of what it may send at
// all and to some prefixes.
func (r *reader) rawEgress(key scalar, n *yaml.Node) (raw rawBandwidth, toward []rawToward) {
	if n.Kind != yaml.SequenceNode {
		return r.rawBandwidth(key, n, "egress", egressKeys[:]), nil
	}
	const help = "as in [{max: 5Gbit}, {to: 10.0.0.0/8, max: 1Gbit}]"
	raw.key = key
	items, ok := r.list(n, "egress", help)
	if ok && len(items) == 0 {
		r.report(r.span(n), "egress is empty", help)
	}
	whole := Span{}
	for _, n := range items {
		at := r.opening(n)
		item := rawToward{}
		item.rawBandwidth = r.bandwidthOf(scalar{text: "egress", kind: plain, span: at}, n, "an item of egress", itemKeys[:], func(key scalar, n *yaml.Node) {
			item.to = r.values(key, n, "to")
		})
		switch {
		case !item.keys.record:
		case item.keys.has("to"):
			toward = append(toward, item)
		case whole != Span{}:
			r.report(at, "two items of egress are without to: one holds for all packets", "", Related{whole, "the first is here"})
		default:
			whole, raw = at, item.rawBandwidth
			raw.key = key
			if len(raw.keys.keys) == 0 {
				r.report(at, "this item of egress is empty", help)
				raw.keys.record = false
			}
		}
	}
	return raw, toward
}

func (r *reader) rawBandwidth(key scalar, n *yaml.Node, what string, names []string) rawBandwidth {
	return r.bandwidthOf(key, n, what, names, nil)
}

// bandwidthOf is rawBandwidth of what may have prefixes, which to reads.
func (r *reader) bandwidthOf(key scalar, n *yaml.Node, what string, names []string, to func(key scalar, n *yaml.Node)) rawBandwidth {
	raw := rawBandwidth{key: key}
	raw.keys = r.block(key, n, what, raw.help(), names, func(name string, key scalar, n *yaml.Node) {
		switch name {
		case "to":
			to(key, n)
		case "max":
			raw.max = r.value(key, n, "max")
		case "burst":
			raw.burst = r.value(key, n, "burst")
		case "method":
			raw.method = r.value(key, n, "method")
		case "pps":
			raw.pps = r.value(key, n, "pps")
		case "min":
			raw.min = r.value(key, n, "min")
		case "weight":
			raw.weight = r.value(key, n, "weight")
		case "links":
			raw.links = r.rawPerLink(key, n)
		}
	})
	return raw
}

// rawPerLink reads the limits that a workload has on single links.
func (r *reader) rawPerLink(key scalar, n *yaml.Node) (each []rawBandwidth) {
	entries, ok := r.section(key, n, "links of egress")
	if ok && len(n.Content) == 0 {
		r.report(key.span, "egress names no link", "as in links: {eth0: {max: 50Mbit}}, or leave links out")
	}
	for _, e := range entries {
		if !e.twice {
			each = append(each, r.rawBandwidth(e.key, e.value, "egress of link "+quote(e.key.text), eachKeys))
		}
	}
	return each
}
