package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

var update = flag.Bool("update", false, "rewrite docs/schema")

func schemaFile(name string) string {
	return filepath.Join("..", "..", "docs", "schema", name+".schema.json")
}

// The schemas in docs/schema are those that weir schema prints.
func TestSchemasAreCommitted(t *testing.T) {
	for _, name := range schemaNames() {
		if name == "policy" {
			continue // docs/policy.schema.json, by its own package
		}
		want, err := schemaOf(name)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.MkdirAll(filepath.Dir(schemaFile(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(schemaFile(name), want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(schemaFile(name))
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what weir schema %s prints (%v); run go test ./cmd/weir -run Schemas -update", schemaFile(name), name, err)
		}
	}
}

// fits holds a JSON text against a committed schema.
func fits(t *testing.T, name string, text []byte) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(schemaFile(name))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
	}
}

// A limit is told of by its own keys.
func TestALimitFitsTheSchema(t *testing.T) {
	s := sample()
	s.SchemaVersion = schemaVersion
	s.Promises = append(s.Promises, limited(plan.Kept, "read back: at most 50Mbit; no packet yet"))
	s.Sets = []agent.SetStatus{
		{Name: "pid 7", Max: 1e7, MaxIngress: 2e7, Traffic: map[string]plan.Traffic{}}, {Name: "pid 8", Traffic: map[string]plan.Traffic{}},
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, "status", text)
	for _, keys := range []string{
		`"promise":"egress","priority":-1,"max":"50Mbit","verdict":"kept"`, `"promise":"priority","priority":15,"verdict":"kept"`,
		`"max":"10Mbit","max_ingress":"20Mbit","alive":false`, `"priority":"","alive":false`,
	} {
		if !bytes.Contains(text, []byte(keys)) {
			t.Errorf("no %s in\n%s", keys, text)
		}
	}
}

const twoWorkloads = `version: 1
links:
  eth0: {rate: 100Mbit}
workloads:
  ssh: {match: [{port: 22}], priority: 15}
  web: {match: [{user: nobody}], priority: 8}
default: {priority: 4}
`

// Every --json of every command fits its schema, in each of the states that a
// host can be in.
func TestOutputsFitTheirSchemas(t *testing.T) {
	h := newHost(t, "eth0", "eth1")
	dir := t.TempDir()
	policy, wrong := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "wrong.yaml")
	for path, text := range map[string]string{policy: twoWorkloads, wrong: "version: 1\nlinks: {eth0: {rate: 1}}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	here, there := h.connection(t)
	for _, step := range []struct {
		schema string
		args   []string
		code   int
	}{
		{"version", []string{"version"}, 0},
		{"labs", []string{"lab", "list"}, 0},
		{"doctor", []string{"doctor"}, 0},
		{"check", []string{"check", policy}, 0},
		{"check", []string{"check", wrong}, exitPolicy},
		{"status", []string{"status"}, 0},
		{"sockets", []string{"sockets"}, 0},
		{"cost", []string{"cost", "--once", "--interval", "200ms"}, 0},
		{"cost-compare", []string{"cost", "compare", "-n", "3", "--a", "true", "--b", "true"}, 0},
		{"cost-probe", []string{"cost", "probe", "--cpu", "0", "--seconds", "0.2"}, 0},
		{"plan", []string{"plan", policy}, 0},
		{"plan", []string{"plan", "--steps", "--detailed-exitcode", policy}, exitDiffers},
		{"apply", []string{"apply", policy}, 0},
		{"apply", []string{"apply", policy}, 0},
		{"plan", []string{"plan", "--steps", "--detailed-exitcode", policy}, 0},
		{"status", []string{"status"}, 0},
		{"explain", []string{"explain", "--pid", "1"}, 0},
		{"explain", []string{"explain", "--flow", "tcp 10.0.0.1:22 > 10.0.0.2:1000"}, 0},
		{"explain", []string{"explain", "--flow", "icmp 10.0.0.1 > 10.0.0.2"}, 0},
		{"explain", []string{"explain", "--pid", fmt.Sprint(os.Getpid())}, 0},
		{"explain", []string{"explain", "--socket", "tcp " + here + " " + there}, 0},
		{"sockets", []string{"sockets"}, 0},
		{"sockets", []string{"sockets", "--all"}, 0},
		{"sockets", []string{"sockets", "--workload", "web"}, 0},
		{"top", []string{"top", "--once", "--interval", "100ms"}, 0},
		{"top", []string{"top", "--once", "--interval", "100ms", "--workload", "web"}, 0},
	} {
		code, out := h.weir(t, append(step.args, "--json")...)
		if code != step.code {
			t.Errorf("%v: exit code %d, want %d", step.args, code, step.code)
		}
		fits(t, step.schema, out)
	}
	// Drift and a rollback are shown too.
	h.here.Output("tc", "qdisc", "del", "dev", "eth0", "root")
	code, out := h.weir(t, "status", "--json")
	if code != exitBroken || !bytes.Contains(out, []byte(`"broken"`)) {
		t.Errorf("status without the queue: exit code %d\n%s", code, out)
	}
	fits(t, "status", out)
	code, out = h.weir(t, "apply", "--confirm", "5m", "--json", policy)
	if code != 0 || !bytes.Contains(out, []byte("confirm_before")) {
		t.Errorf("apply --confirm: exit code %d\n%s", code, out)
	}
	fits(t, "apply", out)
	_, out = h.weir(t, "status", "--json")
	fits(t, "status", out)
	if code, out := h.weir(t, "rollback"); code != 0 {
		t.Errorf("rollback: exit code %d\n%s", code, out)
	}
	_, out = h.weir(t, "status", "--json")
	fits(t, "status", out)
	var s struct{ Rollback *struct{ Proved bool } }
	if err := json.Unmarshal(out, &s); err != nil || s.Rollback == nil || !s.Rollback.Proved {
		t.Errorf("status tells of no proved rollback: %v\n%s", err, out)
	}
}

// connection opens one from here to there and returns its ends.
func (h *testHost) connection(t *testing.T) (here, there string) {
	t.Helper()
	var l net.Listener
	var c net.Conn
	var err error
	h.there.Do(func() { l, err = net.Listen("tcp4", "10.7.0.2:22") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	h.here.Do(func() { c, err = net.Dial("tcp4", "10.7.0.2:22") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.LocalAddr().String(), c.RemoteAddr().String()
}

// weir runs the program on the host and returns its exit code and output.
func (h *testHost) weir(t testing.TB, args ...string) (int, []byte) {
	t.Helper()
	cmd := h.command(t, args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Logf("weir %v: %s", args, exit.Stderr)
		return exit.ExitCode(), out
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out
}

// command is the program on the host.
func (h *testHost) command(t testing.TB, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "weir"
	cmd.Env = append(os.Environ(), h.vars(t)...)
	return cmd
}
