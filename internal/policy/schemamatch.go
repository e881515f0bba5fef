package policy

import "github.com/invopop/jsonschema"

// JSONSchema is one of the selectors of a process, or a flow.
func (schemaMatch) JSONSchema() *jsonschema.Schema {
	only := func(key, description string, value *jsonschema.Schema) *jsonschema.Schema {
		value.Description = description
		properties := jsonschema.NewProperties()
		properties.Set(key, value)
		return &jsonschema.Schema{Type: "object", Properties: properties, Required: []string{key}, AdditionalProperties: jsonschema.FalseSchema}
	}
	text := func(pattern string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Pattern: pattern} }
	user := &jsonschema.Schema{OneOf: []*jsonschema.Schema{text(`^[^\x00-\x20\x7f:,/*?]{1,256}$`), intSchema(0, 1<<32-2)}}
	return &jsonschema.Schema{
		Description: "One of pid, cgroup, unit, user, exe, or a flow by any of port, protocol, cidr, dscp.",
		OneOf: []*jsonschema.Schema{
			only("pid", "A process, its sockets and its children.", intSchema(1, maxPID)),
			only("cgroup", "A cgroup path; * and ? stand for characters, a last ** for any depth.", text(`^([^/]+:)?/`)),
			only("unit", "A systemd unit; without a type it is a service.", text(`^[A-Za-z0-9:_.\\@*?-]{1,247}$`)),
			only("user", "A user, by name or number.", user),
			only("exe", "The absolute path of an executable.", text(`^/[^*?\[]*[^*?\[/]$`)),
			flowSchema(),
		},
	}
}

func flowSchema() *jsonschema.Schema {
	one := uint64(1)
	set := func(p *jsonschema.Schema, description string) *jsonschema.Schema {
		p.Description = description
		return p
	}
	names := func(list []string) (enum []any) {
		for _, name := range list {
			enum = append(enum, name)
		}
		return enum
	}
	port := []*jsonschema.Schema{intSchema(1, 65535), {Type: "string", Pattern: "^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?$"}}
	onePort := &jsonschema.Schema{OneOf: port}
	portless, dscpNames := []any{}, make([]string, len(dscps))
	for _, p := range protocols {
		if !p.ports {
			portless = append(portless, p.name, p.number)
		}
	}
	for i, d := range dscps {
		dscpNames[i] = d.name
	}
	properties := jsonschema.NewProperties()
	properties.Set("port", set(&jsonschema.Schema{OneOf: append(port, &jsonschema.Schema{Type: "array", Items: onePort, MinItems: &one, UniqueItems: true})},
		"Source or destination port, a range, or a list of them."))
	properties.Set("protocol", set(&jsonschema.Schema{OneOf: []*jsonschema.Schema{{Enum: names(protocolNames())}, intSchema(0, 255)}},
		"IP protocol, by name or number."))
	properties.Set("cidr", set(prefixSchema(),
		"Source or destination prefix or address."))
	properties.Set("dscp", set(&jsonschema.Schema{OneOf: []*jsonschema.Schema{{Enum: names(dscpNames)}, intSchema(0, 63)}},
		"DSCP, by name or number."))
	// A port in a protocol that has none matches nothing.
	forbidden := jsonschema.NewProperties()
	forbidden.Set("protocol", &jsonschema.Schema{Enum: portless})
	return &jsonschema.Schema{
		Type: "object", Properties: properties, AdditionalProperties: jsonschema.FalseSchema, MinProperties: &one,
		Not: &jsonschema.Schema{Properties: forbidden, Required: []string{"port", "protocol"}},
	}
}
