package policy

import (
	"cmp"
	"slices"
)

// Version is the version of the policy format that Parse reads.
const Version = 1

// Parse reads a policy file. It returns either a policy in which every value is
// valid and filled in, or Errors with all findings of the file in the order of
// their places. A text that is not YAML has one finding, because nothing behind
// it can be trusted. file is only a name for messages; it is not opened.
func Parse(file string, src []byte) (*Policy, error) {
	m := meaning{reader: reader{source: newSource(src)}}
	document, fault := compose(m.source)
	if fault == nil && document == nil {
		fault = &Diagnostic{Span: Span{1, 1, 1, 2}, Message: "the policy is empty", Help: "start it with version: 1"}
	}
	if fault != nil {
		return nil, Errors{*fault}
	}
	p := m.policy(m.rawPolicy(document), m.span(document))
	if len(m.errs) > 0 {
		m.errs.Sort()
		return nil, m.errs
	}
	p.File = file
	return p, nil
}

// meaning turns a policy as written into one as meant, and reports what can not
// be meant.
type meaning struct {
	reader
	declared    []string // names of the links, and
	links       map[string]*Link
	promised    map[string]Rate // what the shares of a link come to so far
	linksOpen   bool            // there are links, but it is not clear which
	domains     map[string]bool // names of the VRFs, and
	domainsOpen bool            // whether there are some, but it is not clear which
	homeless    bool            // a promise that no link holds was reported
}

func (m *meaning) policy(raw rawPolicy, at Span) *Policy {
	if !raw.keys.record {
		return nil // no mapping at all
	}
	m.version(raw, at)
	p := &Policy{}
	m.links, m.promised = make(map[string]*Link, len(raw.links)), map[string]Rate{}
	for _, e := range raw.links {
		if link := m.link(m.rawLink(e)); !e.twice {
			m.declared = append(m.declared, link.Name)
			m.links[link.Name] = &link
			p.Links = append(p.Links, link)
		}
	}
	slices.SortFunc(p.Links, func(a, b Link) int { return cmp.Compare(a.Name, b.Name) })
	m.linksOpen = raw.keys.has("links") && !raw.linksRead

	p.VRFs = m.vrfs(raw.vrfs)
	m.domainsOpen = raw.keys.has("vrfs") && !raw.vrfsRead

	p.Workloads = make([]Workload, 0, len(raw.workloads))
	for _, e := range raw.workloads {
		if workload := m.workload(m.rawWorkload(e)); !e.twice {
			p.Workloads = append(p.Workloads, workload)
		}
	}
	if raw.fallback.keys.record {
		fallback := m.contract(raw.fallback, ViaBPF, true)
		fallback.Span, _ = raw.keys.at("default")
		if !raw.fallback.keys.has("priority") {
			m.report(fallback.Span, "default promises nothing", "give it a priority, or leave it out")
		}
		p.Default = &fallback
	}
	m.errs = append(m.errs, claims(p.Workloads)...)
	return p
}

func (m *meaning) version(raw rawPolicy, at Span) {
	const help = "write version: 1"
	at.EndLine, at.EndColumn = at.Line, at.Column+1
	if !raw.keys.has("version") {
		m.report(at, "version is missing", "start the file with version: 1")
	}
	switch v := raw.version; {
	case !v.given():
	case v.kind == quoted || v.text == "1.0" || v.text == "01" || v.text == "v1":
		m.report(v.span, "version must be the number 1", help)
	case v.text != "1":
		m.report(v.span, "version "+quote(v.text)+" is not known here", "this Weir reads version 1")
	}
}

// unquoted reports that there is a value, and refuses a number in quotes, so that
// every policy has one way to write it.
func (m *meaning) unquoted(s scalar, what string) bool {
	if s.kind == quoted && isNumber(s.text) {
		m.report(s.span, what+" is a number, and stands in quotes", "write "+clip(s.text))
		return false
	}
	return s.given()
}
