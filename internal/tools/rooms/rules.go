package main

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/weir-net/weir/"

// A kind is what a room may do.
type kind int

const (
	pure      kind = iota + 1 // no I/O: the vocabulary and the decisions
	edge                      // everything that touches Linux
	conductor                 // joins edge and core
	door                      // cmd/…: arguments, output, exit codes
	bench                     // tests and tools: never part of the product
)

// rooms is the house. A directory that is not below one of these is an error,
// so that a new room is given its kind on the day it is built.
var rooms = map[string]kind{
	"internal/policy":   pure,
	"internal/plan":     pure,
	"internal/cost":     pure,
	"internal/fair":     pure,
	"internal/report":   pure,
	"internal/workload": edge,
	"internal/host":     edge,
	"internal/kernel":   edge, // each directory below it is a room of its own
	"internal/state":    edge,
	"internal/observe":  edge,
	"internal/screen":   edge,
	"internal/agent":    conductor,
	"internal/lab":      conductor,
	"cmd":               door,
	"internal/testutil": bench,
	"internal/tools":    bench,
	"test":              bench,
}

// impure is what a pure room does not import: the ways to the outside.
var impure = []string{
	"os", "os/*", "net", "net/http", "net/http/*", "syscall", "log", "log/*", "io/ioutil", "plugin", "testing", "testing/*",
	"golang.org/x/sys/*", "golang.org/x/term", "github.com/cilium/ebpf", "github.com/cilium/ebpf/*",
	"github.com/vishvananda/*", "github.com/mdlayher/*", "github.com/safchain/*", "github.com/spf13/cobra",
}

// shared is what edge rooms may use of another edge room, name by name.
var shared = map[string][]string{
	"internal/host": {"InNetns"},
}

// roomOf returns the room of a directory or import path below the module, ""
// for one that has none.
func roomOf(dir string) (room string, k kind) {
	for r, k := range rooms {
		if dir != r && !strings.HasPrefix(dir, r+"/") {
			continue
		}
		if rest, ok := strings.CutPrefix(dir, "internal/kernel/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			r += "/" + name
		}
		return r, k
	}
	return "", 0
}

// forbidden returns why a file in dir must not import path, "" if it may.
// Names are what the file uses of it; inTest is a _test.go file.
func forbidden(dir, path string, names []string, inTest bool) string {
	from, kind := roomOf(dir)
	target, ours := strings.CutPrefix(path, module)
	if !ours {
		if kind == pure && !inTest && matches(impure, path) {
			return "a pure room has no I/O: what comes from outside is handed to it as a value"
		}
		return ""
	}
	to, toKind := roomOf(target)
	if toKind == door {
		return "nobody imports cmd"
	}
	if inTest || to == from {
		return ""
	}
	switch {
	case toKind == bench && kind != bench:
		return "the product does not import its tests and tools"
	case kind == pure && toKind != pure:
		return "the edge imports the core, never the reverse"
	case kind == edge && toKind == conductor:
		return "an edge room knows nothing of those who conduct it"
	case kind == edge && toKind == edge:
		for _, n := range names {
			if !slices.Contains(shared[to], n) {
				return fmt.Sprintf("edge rooms do not import each other (of %s they may use %v, not %s)", to, shared[to], n)
			}
		}
	case from == "internal/agent" && to == "internal/lab":
		return "the lab uses the agent, never the reverse"
	case kind == bench && toKind != bench && from == "internal/testutil":
		return "testutil is a witness against the product and shares no code with it"
	}
	return ""
}

func matches(patterns []string, path string) bool {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); path == p || ok && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
