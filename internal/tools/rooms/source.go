package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A finding is one broken rule at one place.
type finding struct {
	pos  token.Position
	text string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s", f.pos.Filename, f.pos.Line, f.text)
}

// checkImports holds one file, which lies in dir, to the import rule.
func checkImports(files *token.FileSet, dir string, f *ast.File, inTest bool) []finding {
	var all []finding
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if why := forbidden(dir, p, used(f, spec, p), inTest); why != "" {
			all = append(all, finding{files.Position(spec.Pos()), fmt.Sprintf("import of %s: %s", p, why)})
		}
	}
	return all
}

// used lists what a file takes from one import. A dot import takes everything.
func used(f *ast.File, spec *ast.ImportSpec, p string) []string {
	local := path.Base(p)
	if spec.Name != nil {
		local = spec.Name.Name
	}
	if local == "." || local == "_" {
		return []string{"everything"}
	}
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			// Obj is nil for a package name: it is no variable of this file.
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
				names = append(names, sel.Sel.Name)
			}
		}
		return true
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// checkComments asks for a comment on every exported name of a file.
func checkComments(files *token.FileSet, f *ast.File) []finding {
	var all []finding
	missing := func(at token.Pos, name string) {
		all = append(all, finding{files.Position(at), "exported " + name + " has no comment"})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !wellKnown(d) {
				missing(d.Pos(), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				name, doc := described(s)
				if name != "" && !doc && d.Doc == nil {
					missing(s.Pos(), name)
				}
			}
		}
	}
	return all
}

// wellKnown are the methods whose meaning an interface of the standard library
// has fixed.
func wellKnown(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "String", "Unwrap", "Is", "Len", "Less", "Swap",
		"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"}, d.Name.Name)
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// described returns the first exported name of a declaration and whether it
// has a comment, before it or behind it.
func described(s ast.Spec) (name string, doc bool) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			return s.Name.Name, s.Doc != nil || s.Comment != nil
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() {
				return n.Name, s.Doc != nil || s.Comment != nil
			}
		}
	}
	return "", false
}

// checkLicence asks for an SPDX line among the first of a C file.
func checkLicence(name, text string) []finding {
	head, lines := text, strings.SplitAfterN(text, "\n", 4)
	if len(lines) == 4 {
		head = strings.Join(lines[:3], "")
	}
	if strings.Contains(head, "SPDX-License-Identifier: ") {
		return nil
	}
	return []finding{{token.Position{Filename: name, Line: 1}, "no SPDX-License-Identifier among the first three lines"}}
}
