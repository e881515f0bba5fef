package traffic

import (
	"bytes"
	"strings"
	"testing"
)

func TestWorkerMain(t *testing.T) {
	for _, c := range []struct {
		name, in, out, err string
		code               int
	}{
		{"no orders", "", "", "", 0},
		{"stop of nothing", `{"verb":"stop"}` + "\n", "{}\n", "", 0},
		{"bad address", `{"verb":"send","to":"nowhere"}` + "\n", `"error":`, "", 0},
		{"no JSON", "hello\n", "", "traffic worker: read order: ", 1},
	} {
		var out, errs bytes.Buffer
		code := WorkerMain(strings.NewReader(c.in), &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
			t.Errorf("%s: code %d, output %q, errors %q", c.name, code, &out, &errs)
		}
	}
}
