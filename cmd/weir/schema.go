package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/spf13/cobra"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/cost"
	"github.com/weir-net/weir/internal/policy"
	"github.com/weir-net/weir/internal/report"
)

// schemaVersion is the version of every JSON form that a command prints.
const schemaVersion = "1.0"

func (c *cli) schema() *cobra.Command {
	names := schemaNames()
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print a JSON schema: of policy files, or of what a command prints",
		Long: `Print a JSON schema: that of policy files, for editors, or that of what a
command prints with --json. Without a NAME it is policy; the others are
` + strings.Join(names[1:], ", ") + ".",
		Example: `  weir schema > policy.schema.json
  # yaml-language-server: $schema=policy.schema.json       first line of a policy file
  weir schema status                                       of weir status --json`,
		Args:              upTo("NAME"),
		ValidArgsFunction: first(names...),
		RunE: func(_ *cobra.Command, args []string) error {
			name := "policy"
			if len(args) > 0 {
				name = args[0]
			}
			if !slices.Contains(names, name) {
				return &usageError{fmt.Sprintf("no schema %q", name), didYouMean(name, names, "weir schema --help")}
			}
			text, err := schemaOf(name)
			if err != nil {
				return err
			}
			_, err = c.stdout.Write(text)
			return err
		},
	}
}

// forms are the JSON forms of the commands: a title and a value of its type.
func forms() map[string]form {
	return map[string]form{
		"check":        {"What weir check --json prints", checkReport{}},
		"plan":         {"What weir plan --json prints", planReport{}},
		"apply":        {"What weir apply --json prints", applyReport{}},
		"status":       {"What weir status --json prints", agent.Status{}},
		"top":          {"What weir top --json prints, a line each", agent.Top{}},
		"explain":      {"What weir explain --json prints", agent.Explanation{}},
		"sockets":      {"What weir sockets --json prints", agent.SocketReport{}},
		"cost":         {"What weir cost --json prints, a line each", cost.Report{}},
		"cost-compare": {"What weir cost compare --json prints", cost.Comparison{}},
		"cost-probe":   {"What weir cost probe --json prints", cost.Probe{}},
		"steer":        {"What weir steer --json prints", agent.Steered{}},
		"steer-show":   {"What weir steer --show --json prints, a line each", agent.QueueRates{}},
		"doctor":       {"What weir doctor --json prints", doctorReport{}},
		"version":      {"What weir version --json prints", versionReport{}},
		"labs":         {"What weir lab list --json prints", labsReport{}},
		"vrfs":         {"What weir vrf list --json prints", vrfListReport{}},
		"vrf":          {"What weir vrf show --json prints", vrfReport{}},
		"vrf-doctor":   {"What weir vrf doctor --json prints", vrfDoctorReport{}},
		"vrf-identify": {"What weir vrf identify --json prints", agent.VRFIdentity{}},
	}
}

type form struct {
	title string
	value any
}

func schemaNames() []string {
	return append([]string{"policy", "lab"}, slices.Sorted(maps.Keys(forms()))...)
}

// schemaOf returns a schema by its name, with a final newline.
func schemaOf(name string) ([]byte, error) {
	switch name {
	case "policy":
		return policy.JSONSchema(), nil
	case "lab":
		return report.Schema()
	}
	f := forms()[name]
	reflector := jsonschema.Reflector{
		Anonymous:                 true,
		AllowAdditionalProperties: true, // a later 1.x may add keys
		Namer:                     nameInSchema,
		Mapper:                    asText,
	}
	s := reflector.Reflect(f.value)
	s.Title = f.title
	for _, d := range s.Definitions {
		if d.Properties == nil {
			continue
		}
		if _, ok := d.Properties.Get("schema_version"); ok {
			d.Properties.Set("schema_version", &jsonschema.Schema{Type: "string", Const: schemaVersion})
		}
		if _, ok := d.Properties.Get("agrees"); ok { // null: the kernel says nothing
			d.Properties.Set("agrees", &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "boolean"}, {Type: "null"}}})
		}
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema %s: %w", name, err)
	}
	return append(text, '\n'), nil
}

// asText are the types that have a text form of their own.
func asText(t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[netip.Addr]() || t == reflect.TypeFor[netip.Prefix]() {
		return &jsonschema.Schema{Type: "string"}
	}
	return nil
}

// nameInSchema names a type, which is its name but where two share one.
func nameInSchema(t reflect.Type) string {
	if t == reflect.TypeFor[policy.TCPMemory]() {
		return "TCPMemoryBound" // plan.TCPMemory is the host's
	}
	return t.Name()
}

// printJSON prints a value, indented, alone on standard output.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
