package policy

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// schemaID is the address that a policy file names to get help from an editor.
const schemaID = "https://weir-net.github.io/schema/policy-1.json"

// JSONSchema returns the JSON Schema (draft 2020-12) of a policy file, for
// editors. It cannot say all that Parse checks: what needs two places of the
// file at once, such as a link that is not declared, is left to Parse. What it
// accepts and Parse refuses is allowed, the reverse is not.
func JSONSchema() []byte {
	reflector := jsonschema.Reflector{
		Anonymous: true, // no address made of the package's path
		Namer:     func(t reflect.Type) string { return strings.ToLower(strings.TrimPrefix(t.Name(), "schema")) },
	}
	schema := reflector.Reflect(schemaPolicy{})
	schema.ID = schemaID
	schema.Title = "Weir policy"
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(err) // a schema of ours that is no JSON is a bug in this file
	}
	return append(text, '\n')
}

// The types below have the shape of a policy file, for reflection only.

type schemaPolicy struct {
	Version   int                       `json:"version" jsonschema:"enum=1,description=Version of the file format."`
	Links     map[string]schemaLink     `json:"links,omitempty" jsonschema:"description=The devices at whose egress queue workloads compete\\, by interface name."`
	VRFs      map[string]schemaVRF      `json:"vrfs,omitempty" jsonschema:"description=Routing domains of their own\\, by the name of their device."`
	Workloads map[string]schemaWorkload `json:"workloads,omitempty" jsonschema:"description=Named sets of sockets or packets and what they are promised."`
	Default   *schemaContract           `json:"default,omitempty" jsonschema:"description=The contract of everything that no workload claims. Left out: its priority stays as it is."`
}

type schemaLink struct {
	Rate      string `json:"rate,omitempty" jsonschema:"description=Bandwidth of the link. Left out: the device's own speed.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(bit|Kbit|Mbit|Gbit|Tbit)$,example=1Gbit"`
	Scheduler string `json:"scheduler,omitempty" jsonschema:"description=How the link keeps strict order. auto takes the best that the kernel and the device offer."`
	Adopt     bool   `json:"adopt,omitempty" jsonschema:"description=Replace a root qdisc that is not Weir's. reset puts it back."`

	Egress  *schemaOwn      `json:"egress,omitempty" jsonschema:"description=What all packets may take that leave by the link."`
	Ingress *schemaArriving `json:"ingress,omitempty" jsonschema:"description=What all packets may take that arrive by the link."`
}

type schemaWorkload struct {
	Match     []schemaMatch    `json:"match" jsonschema:"description=A socket or packet belongs here if any item matches.,minItems=1"`
	Priority  schemaPriority   `json:"priority,omitzero"`
	Egress    *schemaEgress    `json:"egress,omitempty" jsonschema:"description=What its packets may take on their way out\\, and get."`
	Ingress   *schemaReceiving `json:"ingress,omitempty" jsonschema:"description=What its sockets may receive\\, by any device but loopback."`
	TCPMemory *schemaTCPMemory `json:"tcp-memory,omitempty" jsonschema:"description=What its TCP sockets may hold together\\, in bytes as the kernel counts them: buffers whole\\, of the queues to send\\, to receive and out of order."`
	VRF       string           `json:"vrf,omitempty" jsonschema:"description=The VRF to which its new sockets are bound."`
	Via       string           `json:"via,omitempty" jsonschema:"description=The mechanism that carries the contract: Weir's BPF programs\\, or cgroup v1's net_prio controller\\, which carries priorities only.,enum=bpf,enum=net_prio"`
}

type schemaEgress struct {
	Max    string                `json:"max,omitempty" jsonschema:"description=The most that they may take of the declared links together\\, on the wire\\, the Ethernet header included: 64Kbit to 100Gbit\\, or a percentage of the rate of the only link.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(bit|Kbit|Mbit|Gbit|Tbit|%)$,example=50Mbit"`
	Burst  string                `json:"burst,omitempty" jsonschema:"description=How much of what can not be paced may pass at once: 2KiB to 1GiB. Left out: what max gives in 10 ms\\, and two frames\\, of TCP in 220 ms.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(B|KiB|MiB|GiB)$,example=256KiB"`
	PPS    int                   `json:"pps,omitempty" jsonschema:"description=The most packets a second\\, each segment as it is on the wire.,minimum=10,maximum=8000000,example=20000"`
	Method string                `json:"method,omitempty" jsonschema:"description=How max is held: pace at the source\\, times of departure over the link's fq\\, or a class of its htb. auto takes the first that the kernel and the link allow.,enum=auto,enum=pace,enum=edt,enum=htb"`
	Min    string                `json:"min,omitempty" jsonschema:"description=What they get of each declared link at least\\, or a percentage of its rate.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(bit|Kbit|Mbit|Gbit|Tbit|%)$,example=20%"`
	Links  map[string]schemaEach `json:"links,omitempty" jsonschema:"description=Of single links\\, by interface name."`
	Weight int                   `json:"weight,omitempty" jsonschema:"description=As how many flows all their flows count together in each limit that they share with others. Left out: each flow counts as one.,minimum=1,maximum=100,example=3"`
}

type schemaEach struct {
	Max    string `json:"max,omitempty" jsonschema:"description=Bandwidth on the wire\\, the Ethernet header included: 64Kbit to 100Gbit\\, or a percentage of the link's rate.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(bit|Kbit|Mbit|Gbit|Tbit|%)$,example=50Mbit"`
	Burst  string `json:"burst,omitempty" jsonschema:"description=How much of what can not be paced may pass at once: 2KiB to 1GiB.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(B|KiB|MiB|GiB)$,example=256KiB"`
	PPS    int    `json:"pps,omitempty" jsonschema:"description=The most packets a second\\, each segment as it is on the wire.,minimum=10,maximum=8000000,example=20000"`
	Method string `json:"method,omitempty" jsonschema:"description=How max is held: pace at the source\\, times of departure over the link's fq\\, or a class of its htb. auto takes the first that the kernel and the link allow.,enum=auto,enum=pace,enum=edt,enum=htb"`
	Min    string `json:"min,omitempty" jsonschema:"description=What they get of this link at least\\, or a percentage of its rate.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(bit|Kbit|Mbit|Gbit|Tbit|%)$,example=20%"`
}

// schemaReceiving is a limit of what a workload receives.
type schemaReceiving struct {
	schemaBandwidth
	Method string `json:"method,omitempty" jsonschema:"description=How max is held: windows of TCP and buckets\\, times of departure over the fq of the links\\, for which what it answers waits\\, or a class of an htb beside the links\\, in which what it acknowledges waits. auto takes the first that the kernel and the links allow\\, edt before htb before pace.,enum=auto,enum=pace,enum=edt,enum=htb"`
}

// schemaOwn is a limit of what leaves by a link.
type schemaOwn struct {
	schemaBandwidth
	Method string `json:"method,omitempty" jsonschema:"description=How max is held: pace at the source and buckets\\, or a filter of tc's police that drops what is above. auto takes the first that the kernel allows.,enum=auto,enum=pace,enum=police"`
}

// schemaArriving is a limit of what arrives by a link.
type schemaArriving struct {
	schemaBandwidth
	Method string `json:"method,omitempty" jsonschema:"description=How max is held: pace at the source and buckets\\, a filter of tc's police that drops what is above\\, or the queue of an ifb\\, in which it waits. auto takes the first that the kernel allows.,enum=auto,enum=pace,enum=police,enum=ifb"`
}

type schemaBandwidth struct {
	Max   string `json:"max,omitempty" jsonschema:"description=Bandwidth on the wire\\, the Ethernet header included: 64Kbit to 100Gbit; of a link also a percentage of its rate.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(bit|Kbit|Mbit|Gbit|Tbit|%)$,example=50Mbit"`
	Burst string `json:"burst,omitempty" jsonschema:"description=How much of what can not be paced may pass at once: 2KiB to 1GiB. Left out: what max gives in 10 ms\\, and two frames\\, of TCP in 220 ms.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(B|KiB|MiB|GiB)$,example=256KiB"`
	PPS   int    `json:"pps,omitempty" jsonschema:"description=The most packets a second\\, each segment as it is on the wire.,minimum=10,maximum=8000000,example=20000"`
}

type schemaTCPMemory struct {
	Max      string `json:"max" jsonschema:"description=The most of all together: 256KiB to 1024GiB.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(B|KiB|MiB|GiB)$,example=128MiB"`
	Soft     string `json:"soft,omitempty" jsonschema:"description=Above it sockets stop growing\\, and shrink as peers drain them: 128KiB to max. Left out: half of max.,pattern=^(0|[1-9][0-9]*)([.][0-9]+)?(B|KiB|MiB|GiB)$,example=64MiB"`
	WhenFull string `json:"when-full,omitempty" jsonschema:"description=What a new connection meets where too little is left below max: the kernel's smallest buffers (the default)\\, or a refusal."`
	Via      string `json:"via,omitempty" jsonschema:"description=What holds it: programs that fit the buffers of sockets (auto and bpf)\\, or of one cgroup of the v1 memory hierarchy its controller (memcg)\\, which knows max alone."`
}

type schemaContract struct {
	Priority schemaPriority `json:"priority"`
}

type (
	schemaPriority struct{}
	schemaMatch    struct{}
)

// JSONSchemaExtend names the rules of map keys, which reflection cannot see.
func (schemaPolicy) JSONSchemaExtend(s *jsonschema.Schema) {
	if links, ok := s.Properties.Get("links"); ok {
		links.PropertyNames = linkNameSchema()
		// A link with nothing but defaults may be written as "eth0:".
		links.AdditionalProperties = &jsonschema.Schema{OneOf: []*jsonschema.Schema{links.AdditionalProperties, {Type: "null"}}}
	}
	if workloads, ok := s.Properties.Get("workloads"); ok {
		workloads.PropertyNames = &jsonschema.Schema{Pattern: "^[a-z0-9][a-z0-9._-]{0,62}$"}
	}
}

// JSONSchemaExtend asks for a promise, and for nothing but a priority of net_prio. What it may send is
// a mapping, or a list with items for prefixes.
func (schemaWorkload) JSONSchemaExtend(s *jsonschema.Schema) {
	if egress, ok := s.Properties.Get("egress"); ok {
		one, mapping := uint64(1), &jsonschema.Schema{Ref: egress.Ref}
		items := &jsonschema.Schema{OneOf: []*jsonschema.Schema{mapping, towardSchema()}}
		egress.Ref, egress.OneOf = "", []*jsonschema.Schema{mapping, {Type: "array", Items: items, MinItems: &one}}
	}
	limits := []*jsonschema.Schema{{Required: []string{"egress"}}, {Required: []string{"ingress"}}, {Required: []string{"tcp-memory"}}, {Required: []string{"vrf"}}}
	s.AnyOf = append([]*jsonschema.Schema{{Required: []string{"priority"}}}, limits...)
	netPrio := jsonschema.NewProperties()
	netPrio.Set("via", &jsonschema.Schema{Const: string(ViaNetPrio)})
	s.Not = &jsonschema.Schema{Properties: netPrio, Required: []string{"via"}, AnyOf: limits}
}

// towardSchema is an item of egress for prefixes.
func towardSchema() *jsonschema.Schema {
	one := uint64(1)
	limits := new(jsonschema.Reflector).Reflect(schemaBandwidth{}).Definitions["schemaBandwidth"]
	properties := jsonschema.NewProperties()
	properties.Set("to", &jsonschema.Schema{
		Description: "A prefix or address, or a list of them that share the limit. The longest counts that fits a packet's destination.",
		OneOf:       []*jsonschema.Schema{prefixSchema(), {Type: "array", Items: prefixSchema(), MinItems: &one, UniqueItems: true}},
	})
	for _, key := range limitKeys {
		if value, ok := limits.Properties.Get(key); ok {
			properties.Set(key, value)
		}
	}
	return &jsonschema.Schema{
		Type: "object", Properties: properties, Required: []string{"to"}, AdditionalProperties: jsonschema.FalseSchema,
		AnyOf: []*jsonschema.Schema{{Required: []string{"max"}}, {Required: []string{"pps"}}},
	}
}

func prefixSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^[0-9a-fA-F:.]+(/(0|[1-9][0-9]{0,2}))?$"}
}

// JSONSchemaExtend asks for a limit or a share.
func (schemaEgress) JSONSchemaExtend(s *jsonschema.Schema) {
	one := uint64(1)
	if links, ok := s.Properties.Get("links"); ok {
		links.PropertyNames, links.MinProperties = linkNameSchema(), &one
	}
	s.MinProperties = &one
	methodNeedsMax(s)
}

// JSONSchemaExtend asks for a limit or a share.
func (schemaEach) JSONSchemaExtend(s *jsonschema.Schema) {
	one := uint64(1)
	s.MinProperties = &one
	methodNeedsMax(s)
}

// methodNeedsMax asks for the limit that a method is of.
func methodNeedsMax(s *jsonschema.Schema) {
	s.DependentRequired = map[string][]string{"method": {"max"}}
}

// JSONSchemaExtend asks for a limit.
func (schemaBandwidth) JSONSchemaExtend(s *jsonschema.Schema) {
	one := uint64(1)
	s.MinProperties = &one
}

// JSONSchemaExtend lists what a new connection can meet.
func (schemaTCPMemory) JSONSchemaExtend(s *jsonschema.Schema) {
	if whenFull, ok := s.Properties.Get("when-full"); ok {
		for _, w := range whenFulls() {
			whenFull.Enum = append(whenFull.Enum, w.String())
		}
	}
	if via, ok := s.Properties.Get("via"); ok {
		for _, name := range memoryVias {
			via.Enum = append(via.Enum, name)
		}
	}
}

// JSONSchemaExtend lists the schedulers.
func (schemaLink) JSONSchemaExtend(s *jsonschema.Schema) {
	if scheduler, ok := s.Properties.Get("scheduler"); ok {
		for _, name := range schedulers() {
			scheduler.Enum = append(scheduler.Enum, string(name))
		}
	}
}

// JSONSchema is a level, or a level by link.
func (schemaPriority) JSONSchema() *jsonschema.Schema {
	one := uint64(1)
	return &jsonschema.Schema{
		Description: "0 to 15, 15 the highest: one level, or one by link with a default.",
		OneOf: []*jsonschema.Schema{
			levelSchema(),
			{Type: "object", PropertyNames: linkNameSchema("default"), AdditionalProperties: levelSchema(), MinProperties: &one},
		},
	}
}

func levelSchema() *jsonschema.Schema { return intSchema(0, Levels-1) }

func intSchema(low, high int) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: json.Number(strconv.Itoa(low)), Maximum: json.Number(strconv.Itoa(high))}
}

// linkNameSchema is the name of an interface. Its limit is in bytes, and a
// schema counts characters, but every real name is ASCII.
func linkNameSchema(also ...any) *jsonschema.Schema {
	names := &jsonschema.Schema{
		Pattern: `^[^\x00-\x20\x7f/:]{1,15}$`,
		Not:     &jsonschema.Schema{Enum: []any{".", "..", "default", "all"}},
	}
	if len(also) == 0 {
		return names
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{names, {Enum: also}}}
}
