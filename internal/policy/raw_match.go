package policy

import "go.yaml.in/yaml/v4"

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
