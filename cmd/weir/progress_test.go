package main

import (
	"io"
	"testing"
)

func TestProgress(t *testing.T) {
	const long = "tell all of the open sockets of this host whose they are"
	for _, tt := range []struct {
		name     string
		terminal bool
		vars     map[string]string
		want     string
	}{
		{"pipe", false, nil, ""},
		{"terminal", true, map[string]string{"NO_COLOR": "1"}, "\r\x1b[Kone\r\x1b[Ktell all of the open…\r\x1b[K"},
		{"accessible", true, map[string]string{"ACCESSIBLE": "1"}, "one\n" + long + "\n"},
		{"dumb terminal", true, map[string]string{"TERM": "dumb"}, "one\n" + long + "\n"},
	} {
		var b buffers
		c := &cli{color: "auto", env: env{
			stderr: &b.stderr, isTerminal: func(io.Writer) bool { return tt.terminal },
			columns: func(io.Writer) int { return 22 }, getenv: func(name string) string { return tt.vars[name] },
		}}
		p := c.progress()
		p.step("one")
		p.step(long)
		p.end()
		if got := b.stderr.String(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
