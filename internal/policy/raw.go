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
	keys     keySet
	priority rawPriority
	egress   rawBandwidth
	toward   []rawToward // items of egress that are of prefixes
	ingress  rawBandwidth
}

// rawToward is an item of a workload's egress that is of some prefixes.
type rawToward struct {
	rawBandwidth
	to []scalar
}

// rawPriority is one level, or a level by link.
type rawPriority struct {
	key     scalar
	whole   scalar
	perLink []rawLevel
}

type rawLevel struct{ link, level scalar }

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
	links  []rawBandwidth // each with the link's name as its key
}

// rawSelector is one item of a match list.
type rawSelector struct {
	span   Span
	keys   keySet
	fields []rawField // in the order of the file
	ports  []scalar   // port as a list
	broken bool       // what is wrong with it was reported
}

type rawField struct {
	name string
	scalar
}

// get returns the value of a key, absent if it is not there.
func (s rawSelector) get(name string) scalar {
	for _, f := range s.fields {
		if f.name == name {
			return f.scalar
		}
	}
	return scalar{}
}

// The keys of each mapping, in the order in which they are shown. They are
// constants: arrays, sliced where they are used.
var (
	policyKeys   = [...]string{"version", "links", "workloads", "default"}
	linkKeys     = [...]string{"rate", "scheduler", "adopt", "egress", "ingress"}
	workloadKeys = [...]string{"match", "priority", "egress", "ingress", "via"}
	contractKeys = workloadKeys[1:2] // of default:, which has no limits
	egressKeys   = [...]string{"max", "burst", "pps", "method", "min", "links"}
	eachKeys     = egressKeys[:5]                                                     // of one link below it
	limitKeys    = egressKeys[:3]                                                     // of ingress, and of a link itself
	itemKeys     = [...]string{"to", "max", "burst", "pps", "method", "min", "links"} // of an item of egress
	selectorKeys = [...]string{"pid", "cgroup", "unit", "user", "exe", "port", "protocol", "cidr", "dscp"}
	processKeys  = selectorKeys[:5]
)

func (r *reader) rawPolicy(n *yaml.Node) (raw rawPolicy) {
	raw.keys = r.record(n, "a policy", policyKeys[:], func(name string, key scalar, n *yaml.Node) {
		switch name {
		case "version":
			raw.version = r.value(key, n, "version")
		case "links":
			raw.links, raw.linksRead = r.section(key, n, "links")
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
			raw.egress = r.rawBandwidth(key, n, name, limitKeys)
		case "ingress":
			raw.ingress = r.rawBandwidth(key, n, name, limitKeys)
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
			raw.contract.ingress = r.rawBandwidth(key, n, name, limitKeys)
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
	switch {
	case !r.filled(key, n, what):
	case n.Kind == yaml.ScalarNode:
		if r.simple(n) {
			r.report(r.span(n), what+" must be a mapping", raw.help())
		}
	default:
		raw.keys = r.record(n, what, names, func(name string, key scalar, n *yaml.Node) {
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
			case "links":
				raw.links = r.rawPerLink(key, n)
			}
		})
	}
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

func (r *reader) match(key scalar, n *yaml.Node) []rawSelector {
	const help = "as in [{port: 22, protocol: tcp}, {unit: nginx.service}]"
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" && r.simple(n) {
		r.report(key.span, "match is empty, so no packet can belong here", help)
		return nil
	}
	items, ok := r.list(n, "match", help)
	if ok && len(items) == 0 {
		r.report(r.span(n), "match is empty, so no packet can belong here", help)
	}
	raws := make([]rawSelector, 0, len(items))
	for _, item := range items {
		raws = append(raws, r.rawSelector(item))
	}
	return raws
}

func (r *reader) rawSelector(n *yaml.Node) rawSelector {
	raw, before := rawSelector{span: r.span(n)}, len(r.errs)
	raw.keys = r.record(n, "a match item", selectorKeys[:], func(name string, key scalar, n *yaml.Node) {
		field := rawField{name: name}
		if name == "port" && n.Kind == yaml.SequenceNode {
			raw.ports = r.valueList(key, n, "port is an empty list, which matches nothing", "leave it out to match any port")
		} else {
			field.scalar = r.value(key, n, name)
		}
		raw.fields = append(raw.fields, field)
	})
	raw.broken = len(r.errs) > before
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
