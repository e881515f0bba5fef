package policy

import "github.com/invopop/jsonschema"

type schemaVRF struct {
	Table int      `json:"table,omitempty" jsonschema:"description=Number of its table of routes. Left out: the first from 1000 on that nothing uses.,minimum=1,maximum=4294967295,example=1000"`
	Links []string `json:"links,omitempty" jsonschema:"description=The links that move into it\\, with their addresses\\, routes and neighbours: a list\\, or by name with what is declared of them.,minItems=1"`

	Addresses []schemaAddress  `json:"addresses,omitempty" jsonschema:"description=Addresses of the VRF's own device\\, which is its loopback.,minItems=1"`
	Routes    []schemaVRFRoute `json:"routes,omitempty" jsonschema:"description=Routes of its table\\, beside those that its links bring.,minItems=1"`
}

type schemaVRFRoute struct {
	To     string `json:"to" jsonschema:"description=A prefix or address\\, or default\\, of the gateway's family.,pattern=^(default|[0-9a-fA-F:.]+(/(0|[1-9][0-9]{0\\,2}))?)$,example=10.0.0.0/8"`
	Via    string `json:"via,omitempty" jsonschema:"description=The gateway.,pattern=^[0-9a-fA-F:.]+$,example=192.0.2.1"`
	Link   string `json:"link,omitempty" jsonschema:"description=A link of the VRF. Left out: that on which the gateway is."`
	Metric int    `json:"metric,omitempty" jsonschema:"description=Of routes to the same the one with the least counts. Left out: 0\\, of IPv6 1024.,minimum=0,maximum=4278198271,example=100"`
	Type   string `json:"type,omitempty" jsonschema:"description=What becomes of packets: they are sent (the default)\\, or not\\, and their sender is told that or not.,enum=unicast,enum=unreachable,enum=prohibit,enum=blackhole"`
}

type schemaAddress struct{}

// JSONSchema is an address of a device, with the length of its network.
func (schemaAddress) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^[0-9a-fA-F:.]+/[1-9][0-9]{0,2}$", Examples: []any{"192.0.2.7/24"}}
}

// JSONSchemaExtend lets links be a list, or a mapping with what is declared of each.
func (schemaVRF) JSONSchemaExtend(s *jsonschema.Schema) {
	links, ok := s.Properties.Get("links")
	if !ok {
		return
	}
	one := uint64(1)
	properties := jsonschema.NewProperties()
	properties.Set("addresses", &jsonschema.Schema{
		Description: "Addresses that it has beside those that it has anyway.", Type: "array", Items: schemaAddress{}.JSONSchema(), MinItems: &one,
	})
	link := &jsonschema.Schema{Type: "object", Properties: properties, AdditionalProperties: jsonschema.FalseSchema}
	names := &jsonschema.Schema{Type: "array", Items: links.Items, MinItems: &one}
	links.Type, links.Items, links.MinItems = "", nil, nil
	links.OneOf = []*jsonschema.Schema{names, {
		Type: "object", PropertyNames: linkNameSchema(), MinProperties: &one,
		AdditionalProperties: &jsonschema.Schema{OneOf: []*jsonschema.Schema{link, {Type: "null"}}},
	}}
}

// JSONSchemaExtend asks for what says where packets go.
func (schemaVRFRoute) JSONSchemaExtend(s *jsonschema.Schema) {
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"via"}}, {Required: []string{"link"}}, {Required: []string{"type"}}}
}
