package policy

import (
	"errors"
	"slices"

	"go.yaml.in/yaml/v4"
)

// reader turns nodes into raw values and collects what is wrong on the way.
// What it reports once is marked as present, so that no later step reports it
// again as missing.
type reader struct {
	source
	errs Errors
}

func (r *reader) report(at Span, message, help string, related ...Related) {
	if at.Line > len(r.lines) { // an empty value may stand behind the last line
		at = r.clamp(at.Line, at.Column)
	}
	r.errs = append(r.errs, Diagnostic{Span: at, Message: message, Help: help, Related: related})
}

// refuse reports the error of a value's parser.
func (r *reader) refuse(at Span, err error) {
	if err == nil {
		return
	}
	var invalid *ValueError
	if errors.As(err, &invalid) {
		r.report(at, invalid.Message, invalid.Help)
	} else {
		r.report(at, err.Error(), "")
	}
}

// scalar is a single value as written.
type scalar struct {
	text string
	kind scalarKind
	span Span
}

// scalarKind tells 5 from "5" where that matters. The zero kind is no value.
type scalarKind uint8

const (
	absent scalarKind = iota
	null              // nothing, or ~ or null
	plain
	quoted
)

// given reports that there is a value, and not nothing or null.
func (s scalar) given() bool { return s.kind == plain || s.kind == quoted }

// simple refuses anchors, aliases and tags: a value that stands somewhere else
// than where it counts makes every message point to the wrong place.
func (r *reader) simple(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode:
		r.report(r.span(n), "aliases are not used in a policy", "write the value out")
	case n.Anchor != "":
		r.report(r.mark(n), "anchors are not used in a policy", "remove &"+quoteless(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		r.report(r.mark(n), "tags are not used in a policy", "remove it, or put the value in quotes")
	default:
		return true
	}
	return false
}

// mark is the first word of a node: its anchor or its tag.
func (r *reader) mark(n *yaml.Node) Span {
	return r.span(&yaml.Node{Kind: yaml.AliasNode, Line: n.Line, Column: n.Column})
}

// scalar reads a single value. The result is absent if it is something else.
func (r *reader) scalar(n *yaml.Node, what string) scalar {
	switch {
	case !r.simple(n):
		return scalar{}
	case n.Kind != yaml.ScalarNode:
		kind := "a list"
		if n.Kind == yaml.MappingNode {
			kind = "a mapping"
		}
		r.report(r.opening(n), what+" must be a single value, not "+kind, "")
		return scalar{}
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return scalar{n.Value, quoted, r.span(n)}
	case n.Tag == "!!null":
		return scalar{"", null, r.span(n)}
	}
	return scalar{n.Value, plain, r.span(n)}
}

// value is scalar where nothing is not a value either.
func (r *reader) value(key scalar, n *yaml.Node, what string) scalar {
	s := r.scalar(n, what)
	if s.kind == null {
		r.report(key.span, what+" has no value", "")
		return scalar{}
	}
	return s
}

// opening is the place of a collection for a message about all of it: the
// whole of a flow collection, the first line of a block.
func (r *reader) opening(n *yaml.Node) Span {
	at := r.span(n)
	if at.EndLine > at.Line {
		at.EndLine = at.Line
		at.EndColumn = r.width(at.Line) + 1
	}
	return at
}

// entry is a key of a mapping and its value.
type entry struct {
	key   scalar
	value *yaml.Node
	twice bool // the key was there before, and was reported
}

// mapping reads the entries of a mapping. ok is false if it is no mapping.
func (r *reader) mapping(n *yaml.Node, what string) (entries []entry, ok bool) {
	if !r.simple(n) {
		return nil, false
	}
	if n.Kind != yaml.MappingNode {
		message := what + " must be a mapping"
		if n.Kind == yaml.SequenceNode {
			message += ", not a list"
		}
		r.report(r.opening(n), message, "write it as key: value")
		return nil, false
	}
	entries = make([]entry, 0, len(n.Content)/2)
	var index keyIndex
	for i := 0; i+1 < len(n.Content); i += 2 {
		node := n.Content[i]
		if node.Kind == yaml.ScalarNode && node.Tag == "!!merge" {
			r.report(r.span(node), "merge keys are not used in a policy", "write the values out")
			continue
		}
		key := r.scalar(node, "a key")
		if key.kind == absent {
			continue
		}
		if key.kind == null {
			key.text = node.Value // a key called null is a text like any other
		}
		if first, twice := index.find(entries, key.text); twice {
			r.report(key.span, "duplicate key "+quote(key.text), "", Related{first, "first here"})
			entries = append(entries, entry{key, n.Content[i+1], true})
			continue
		}
		entries = append(entries, entry{key, n.Content[i+1], false})
	}
	return entries, true
}

// keyIndex finds the keys of a mapping that were read so far: by looking at all
// in a small one, by a map in a large one.
type keyIndex struct {
	places  map[string]Span
	indexed int
}

func (k *keyIndex) find(entries []entry, key string) (Span, bool) {
	if k.places == nil && len(entries) < 16 {
		for _, e := range entries {
			if e.key.text == key && !e.twice {
				return e.key.span, true
			}
		}
		return Span{}, false
	}
	if k.places == nil {
		k.places = make(map[string]Span, cap(entries))
	}
	for ; k.indexed < len(entries); k.indexed++ {
		if e := entries[k.indexed]; !e.twice {
			k.places[e.key.text] = e.key.span
		}
	}
	span, there := k.places[key]
	return span, there
}

// keySet is what a record has of keys. The zero keySet is of no record at all.
type keySet struct {
	record bool // it is a mapping
	keys   []keyAt
}

type keyAt struct {
	name string
	span Span
}

// at returns where a key stands; what was meant by a misspelled one counts.
func (k keySet) at(name string) (span Span, there bool) {
	for _, key := range k.keys {
		if key.name == name {
			return key.span, true
		}
	}
	return Span{}, false
}

func (k keySet) has(name string) bool {
	_, there := k.at(name)
	return there
}

func (k keySet) hasAny(names []string) bool { return slices.ContainsFunc(names, k.has) }

// record reads a mapping with known keys, each by its own function. It returns
// the keys that are there, or were meant and are misspelled.
func (r *reader) record(n *yaml.Node, what string, names []string, field func(name string, key scalar, n *yaml.Node)) (set keySet) {
	entries, ok := r.mapping(n, what)
	if !ok {
		return set
	}
	set.record = true
	set.keys = make([]keyAt, 0, len(entries))
	for _, e := range entries {
		name := e.key.text
		if e.twice {
			continue
		}
		if slices.Contains(names, name) {
			set.keys = append(set.keys, keyAt{name, e.key.span})
			field(name, e.key, e.value)
			continue
		}
		r.report(e.key.span, unknownKey(name, what), DidYouMean(name, names, possible(names)))
		if meant := Suggest(name, names); meant != "" {
			set.keys = append(set.keys, keyAt{meant, e.key.span})
		}
	}
	return set
}

// block is record of what stands behind a key; help shows how it is written where
// there is a single value in its place.
func (r *reader) block(key scalar, n *yaml.Node, what, help string, names []string, field func(name string, key scalar, n *yaml.Node)) keySet {
	switch {
	case !r.filled(key, n, what):
	case n.Kind == yaml.ScalarNode:
		if r.simple(n) {
			r.report(r.span(n), what+" must be a mapping", help)
		}
	default:
		return r.record(n, what, names, field)
	}
	return keySet{}
}

// unknownKey says of a key that a mapping does not have what is wrong with it.
func unknownKey(name, what string) string {
	switch {
	case name == "method":
		return what + " has no method: only a limit has one"
	case name == "tcp-memory" && what == "default":
		return "default has no tcp-memory, which is of a workload's sockets: all others are bounded by the host's own net.ipv4.tcp_mem"
	case name == "vrf" && what == "default":
		return "default has no vrf, which is of a workload's sockets: all others are where their makers have them"
	case name == "to" && what == "egress":
		return "egress has a to: where it goes somewhere it is a list, as in [{to: 10.0.0.0/8, max: 1Gbit}]"
	}
	return "unknown key " + quote(name) + " in " + what
}

// list reads the items of a list.
func (r *reader) list(n *yaml.Node, what, help string) (items []*yaml.Node, ok bool) {
	if !r.simple(n) {
		return nil, false
	}
	if n.Kind != yaml.SequenceNode {
		r.report(r.opening(n), what+" must be a list", help)
		return nil, false
	}
	return n.Content, true
}
