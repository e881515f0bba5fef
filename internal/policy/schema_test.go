package policy

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

var update = flag.Bool("update", false, "rewrite the golden files and docs/policy.schema.json")

const schemaFile = "../../docs/policy.schema.json"

func TestSchemaFileIsCurrent(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, JSONSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, JSONSchema()) {
		t.Errorf("%s is not what JSONSchema returns; run go test ./internal/policy -update", schemaFile)
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(schemaID, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(schemaID)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate holds the text against the schema as an editor does.
func validate(t *testing.T, schema *jsonschema.Schema, src string) error {
	t.Helper()
	var value any
	if err := yaml.Load([]byte(src), &value); err != nil {
		t.Fatalf("%v in:\n%s", err, src)
	}
	return schema.Validate(value)
}

func TestSchemaAcceptsExamples(t *testing.T) {
	schema := compileSchema(t)
	for _, file := range exampleFiles(t) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, schema, string(src)); err != nil {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
	for _, snippet := range docSnippets(t) {
		if err := validate(t, schema, snippet.text); err != nil {
			t.Errorf("docs/policy.md:%d: %v", snippet.line, err)
		}
	}
}

// What the schema can say, it says; and Parse says it too.
func TestSchemaAndParseRefuse(t *testing.T) {
	const head = "version: 1\nlinks: {eth0: {}}\n"
	item := func(item string) string {
		return head + "workloads: {w: {match: [" + item + "], priority: 1}}\n"
	}
	link := func(link string) string { return "version: 1\nlinks: {eth0: " + link + "}\n" }
	contract := func(contract string) string {
		return head + "workloads: {w: {match: [{pid: 1}], " + contract + "}}\n"
	}
	vrf := func(vrf string) string { return "version: 1\nvrfs: {mgmt: " + vrf + "}\n" }
	bad := []string{
		"links: {eth0: {}}\n",
		"version: 2\n",
		"version: \"1\"\n",
		"- version: 1\n",
		"version: 1\nlinsk: {}\n",
		"version: 1\nlinks: [eth0]\n",
		"version: 1\nlinks: {\"eth 0\": {}}\n",
		"version: 1\nlinks: {a-very-long-interface: {}}\n",
		"version: 1\nlinks: {default: {}}\n",
		link("{rate: 10}"),
		link("{rate: 10mbit}"),
		link("{rate: 10MB/s}"),
		link("{rate: 010Mbit}"),
		link("{rate: -1Mbit}"),
		link("{scheduler: cake}"),
		link("{adopt: maybe}"),
		link("{egress: 5}"),
		link("{egress: {}}"),
		link("{egress: {pps: 9}}"),
		link("{egress: [{max: 1Mbit}]}"),
		contract("egress: []"),
		contract("egress: [{}]"),
		contract("egress: [{to: 10.0.0.0/8}]"),
		contract("egress: [{to: [], max: 1Mbit}]"),
		contract("egress: [{to: here, max: 1Mbit}]"),
		contract("egress: [{to: 10.0.0.0/8, max: 1Mbit, min: 1Mbit}]"),
		contract("egress: [{to: 10.0.0.0/8, links: {eth0: {max: 1Mbit}}}]"),
		contract("egress: {to: 10.0.0.0/8, max: 1Mbit}"),
		contract("egress: {weight: 0}"),
		contract("egress: {weight: 101}"),
		contract("egress: [{to: 10.0.0.0/8, max: 1Mbit, weight: 3}]"),
		link("{egress: {max: 1Mbit, weight: 3}}"),
		contract("ingress: [{to: 10.0.0.0/8, max: 1Mbit}]"),
		link("{ingress: {pps: 8000001}}"),
		link("{ingress: {pps: \"20000\"}}"),
		link("{ingress: {max: 5}}"),
		link("{ingress: {max: 1Mbit, links: {eth0: {max: 1Mbit}}}}"),
		item("{}"),
		item(""),
		item("22"),
		item("{pid: 0}"),
		item("{pid: -5}"),
		item("{pid: \"12\"}"),
		item("{unit: a/b}"),
		item("{unit: x.service, port: 80}"),
		item("{pid: 1, user: root}"),
		item("{user: \"a b\"}"),
		item("{cgroup: batch}"),
		item("{exe: rsync}"),
		item("{exe: /usr/bin/}"),
		item("{container: web}"),
		item("{port: 0}"),
		item("{port: 65536}"),
		item("{port: ssh}"),
		item("{port: []}"),
		item("{port: [80, 80]}"),
		item("{port: 80, protocol: icmp}"),
		item("{port: 80, protocol: 58}"),
		item("{protocol: tpc}"),
		item("{protocol: 256}"),
		item("{cidr: example.org}"),
		item("{cidr: 10.0.0.0/08}"),
		item("{dscp: 64}"),
		item("{dscp: af44}"),
		contract("priority: 16"),
		contract("priority: -1"),
		contract("priority: high"),
		contract("priority: \"3\""),
		contract("priority: {}"),
		contract("priority: {eth0: 16}"),
		contract("priority: 3, via: cgroup"),
		contract("via: net_prio"),
		contract("egress: {}"),
		contract("egress: 1Mbit"),
		contract("egress: {links: {}}"),
		contract("egress: {max: 1Mbit, links: {}}"),
		contract("egress: {links: {eth0: 1Mbit}}"),
		contract("egress: {links: {eth0: {}}}"),
		contract("egress: {links: {eth0: {max: 1mbit}}}"),
		contract("egress: {links: {\"eth 0\": {max: 1Mbit}}}"),
		contract("egress: {links: {eth0: {max: 1Mbit}}}, via: net_prio"),
		contract("ingress: {}"),
		contract("ingress: 1Mbit"),
		contract("ingress: {max: 1mbit}"),
		contract("priority: 3, ingress: {max: 1Mbit, min: 1Mbit}"),
		contract("ingress: {max: 1Mbit, links: {eth0: {max: 1Mbit}}}"),
		contract("ingress: {max: 1Mbit}, via: net_prio"),
		contract("priority: 3, ingress: {max: 1Mbit}, via: net_prio"),
		contract("tcp-memory: {}"),
		contract("tcp-memory: 128MiB"),
		contract("tcp-memory: {soft: 1MiB}"),
		contract("tcp-memory: {max: 128MB}"),
		contract("tcp-memory: {max: 128}"),
		contract("tcp-memory: {max: 128MiB, soft: 1Mbit}"),
		contract("tcp-memory: {max: 128MiB, when-full: drop}"),
		contract("tcp-memory: {max: 128MiB, via: memory}"),
		contract("tcp-memory: {max: 128MiB}, via: net_prio"),
		contract("priority: 3, tcp-memory: {max: 128MiB}, via: net_prio"),
		contract("egress: {max: 1mbit}"),
		contract("egress: {min: 1mbit}"),
		contract("egress: {max: 1Mbit, min: 5.%}"),
		contract("egress: {links: {eth0: {min: 020%}}}"),
		contract("egress: {min: 1Mbit}, via: net_prio"),
		contract("egress: {max: 1Mbit}, via: net_prio"),
		contract("priority: 3, egress: {max: 1Mbit}, via: net_prio"),
		vrf("{links: {}}"),
		vrf("{links: []}"),
		vrf("{links: {eth0: [192.0.2.7/24]}}"),
		vrf("{links: {eth0: {addresses: [192.0.2.7]}}}"),
		vrf("{links: {eth0: {address: 192.0.2.7/24}}}"),
		vrf("{links: {\"eth 0\": {addresses: [192.0.2.7/24]}}}"),
		vrf("{addresses: []}"),
		vrf("{addresses: [here/24]}"),
		vrf("{routes: []}"),
		vrf("{routes: {to: default, via: 192.0.2.1}}"),
		vrf("{routes: [{via: 192.0.2.1}], links: [eth0]}"),
		vrf("{routes: [{to: 10.0.0.0/8}], links: [eth0]}"),
		vrf("{routes: [{to: default, via: here}], links: [eth0]}"),
		vrf("{routes: [{to: default, via: 192.0.2.1/24}], links: [eth0]}"),
		vrf("{routes: [{to: default, via: 192.0.2.1, metric: -1}], links: [eth0]}"),
		vrf("{routes: [{to: default, via: 192.0.2.1, table: 7}], links: [eth0]}"),
		vrf("{routes: [{to: 10.0.0.0/8, type: throw}]}"),
		head + "workloads: {W: {match: [{pid: 1}], priority: 1}}\n",
		head + "workloads: {w: {priority: 1}}\n",
		head + "default: {}\n",
		head + "default: {match: [{pid: 1}], priority: 1}\n",
		head + "default: {priority: 1, egress: {max: 1Mbit}}\n",
		head + "default: {priority: 1, ingress: {max: 1Mbit}}\n",
		head + "default: {priority: 1, tcp-memory: {max: 128MiB}}\n",
	}
	schema := compileSchema(t)
	for _, src := range bad {
		if err := validate(t, schema, src); err == nil {
			t.Errorf("the schema accepts:\n%s", src)
		}
		if _, err := Parse("bad.yaml", []byte(src)); err == nil {
			t.Errorf("Parse accepts:\n%s", src)
		}
	}
}
