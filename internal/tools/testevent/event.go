package testevent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// An Event is one line of go test -json (see go doc test2json and go help
// buildjson), or the one line of cmd features that says what another kernel is
// and has.
type Event struct {
	Action      string
	Package     string  `json:",omitempty"`
	ImportPath  string  `json:",omitempty"` // of a build event
	FailedBuild string  `json:",omitempty"` // the build that made this package fail
	Test        string  `json:",omitempty"`
	Elapsed     float64 `json:",omitempty"` // seconds
	Output      string  `json:",omitempty"`
	Key, Value  string  `json:",omitempty"` // of an attribute of the test

	Features map[string]bool `json:",omitempty"` // by the names of testutil/feature
	Kernel   string          `json:",omitempty"` // its release
}

// Read calls each for every event. Lines that are none are passed on to other,
// so that what a machine's console says is not lost.
func Read(r io.Reader, other io.Writer, each func(Event)) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e Event
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
