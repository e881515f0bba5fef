package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pages are all that this project says of itself.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "test/*/*.md", "examples/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

var (
	link      = regexp.MustCompile(`\]\(([^)]*)\)`)
	fenced    = regexp.MustCompile("(?s)```.*?```")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unspoken  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	elsewhere = regexp.MustCompile(`^[a-z]+:`)
)

// anchors are the headings of a page as links name them.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all = append(all, strings.ReplaceAll(unspoken.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// Every link within the pages leads to a file, and to a heading that is there.
func TestLinksLead(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
			if elsewhere.MatchString(m[1]) {
				continue
			}
			links++
			name, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			there, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s: no file for the link %s", page, m[1])
				continue
			}
			if anchor == "" || there.IsDir() {
				continue
			}
			text, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s: no heading for the link %s", page, m[1])
			}
		}
	}
	if links < 50 {
		t.Errorf("%d links found in %d pages", links, len(pages(t)))
	}
}
