package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var schemaPath = filepath.Join("..", "..", "docs", "lab-result.schema.json")

func TestSchemaIsCommitted(t *testing.T) {
	got, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, schemaPath, got)
}

// TestSchemaDecides gives an independent validator real results and broken ones.
func TestSchemaDecides(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "ssh.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, with string }{
		{"as it is", "", ""},
		{"undecided claim", `"kept": true`, `"kept": null`},
		{"later minor version's key", `"lab": "ssh"`, `"lab": "ssh", "later": 1`},
		{"! kept as a word", `"kept": true`, `"kept": "yes"`},
		{"! other schema version", `"schema_version": "1.0"`, `"schema_version": "2.0"`},
		{"! no claims", `"claims"`, `"klaims"`},
		{"! started is no time", `"started": "`, `"started": "on `},
		{"! n in parts", `"n": 6`, `"n": 6.5`},
	} {
		document := string(text)
		if c.old != "" {
			if !strings.Contains(document, c.old) {
				t.Fatalf("%s: the sample has no %s", c.name, c.old)
			}
			document = strings.Replace(document, c.old, c.with, 1)
		}
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
		if err != nil {
			t.Fatal(err)
		}
		err = schema.Validate(instance)
		if refused := strings.HasPrefix(c.name, "! "); refused != (err != nil) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestResultsAreValid(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(instance); err != nil {
		t.Error(err)
	}
}
