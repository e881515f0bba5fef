package report

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"
)

// Schema returns the JSON schema of a Result, indented, with a final newline.
func Schema() ([]byte, error) {
	reflector := jsonschema.Reflector{
		Anonymous:                 true,
		AllowAdditionalProperties: true, // a later 1.x may add keys
	}
	schema := reflector.Reflect(&Result{})
	schema.Title = "Result of a Weir lab"
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode schema of lab results: %w", err)
	}
	return append(text, '\n'), nil
}

// JSONSchemaExtend lets kept be null: the claim could not be decided.
func (Claim) JSONSchemaExtend(s *jsonschema.Schema) {
	s.Properties.Set("kept", &jsonschema.Schema{
		OneOf:       []*jsonschema.Schema{{Type: "boolean"}, {Type: "null"}},
		Description: "true: kept, false: broken, null: not provable here",
	})
}

// JSONSchemaExtend pins the version of the form and gives times their format.
func (Result) JSONSchemaExtend(s *jsonschema.Schema) {
	s.Properties.Set("schema_version", &jsonschema.Schema{Type: "string", Const: SchemaVersion})
	s.Properties.Set("started", &jsonschema.Schema{Type: "string", Format: "date-time"})
}
