package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	found, err := check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(64)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// check walks a source tree and holds every file to the rules.
func check(tree fs.FS) ([]finding, error) {
	var all []finding
	documented := map[string]bool{} // directory of a package -> it has a package comment
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		text, found, err := checkFile(tree, name)
		if err != nil {
			return err
		}
		all = append(all, found...)
		if text != nil && !strings.HasSuffix(name, "_test.go") {
			documented[path.Dir(name)] = documented[path.Dir(name)] || text.Doc != nil
		}
		return nil
	})
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			all = append(all, finding{token.Position{Filename: dir, Line: 1}, "the package has no comment (see doc.go of others)"})
		}
	}
	return all, err
}

// checkFile returns the parsed file, if it is one of Go, and what it breaks.
func checkFile(tree fs.FS, name string) (*ast.File, []finding, error) {
	switch path.Ext(name) {
	case ".go":
	case ".c", ".h":
		text, err := fs.ReadFile(tree, name)
		return nil, checkLicence(name, string(text)), err
	default:
		return nil, nil, nil
	}
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, nil, err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil {
		return nil, nil, err
	}
	dir, inTest := path.Dir(name), strings.HasSuffix(name, "_test.go")
	var found []finding
	if room, _ := roomOf(dir); room == "" {
		found = append(found, finding{token.Position{Filename: name, Line: 1}, "no room is known for " + dir + ": give it a kind in internal/tools/rooms/rules.go"})
	}
	found = append(found, checkImports(files, dir, f, inTest)...)
	if !inTest && !ast.IsGenerated(f) {
		found = append(found, checkComments(files, f)...)
	}
	return f, found, nil
}
