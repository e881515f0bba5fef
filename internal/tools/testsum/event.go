package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// An event is one line of go test -json (see go doc test2json and go help
// buildjson), or the one line of cmd features that says what another kernel has.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build event
	FailedBuild string // the build that made this package fail
	Test        string
	Elapsed     float64 // seconds
	Output      string
	Features    map[string]bool
}

// read calls each for every event. Lines that are none are passed on to other,
// so that what a machine's console says is not lost.
func read(r io.Reader, other io.Writer, each func(event)) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e event
			if line[0] == '{' && json.Unmarshal(line, &e) == nil && e.Action != "" {
				each(e)
			} else if _, err := other.Write(line); err != nil {
				return fmt.Errorf("write output: %w", err)
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}
