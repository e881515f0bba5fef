package plan

import (
	"strings"
	"testing"
)

// TestOutsideClasses: a limit that htb holds is refused where another workload has a
// cgroup below; one that is paced binds it.
func TestOutsideClasses(t *testing.T) {
	const htb, pace = ", egress: {max: 50Mbit, method: htb}", ", egress: {max: 50Mbit, method: pace}"
	const both = ", egress: {max: 60Mbit, links: {eth0: {max: 50Mbit, method: htb}}}"
	for name, c := range map[string]struct {
		limits []string // of /, /x, /x/x, …
		want   string
	}{
		"beside a paced one":    {[]string{both, ""}, `cgroup /x: the limit of workload "w0" does not hold there: htb holds it`},
		"alone":                 {[]string{htb}, ""},
		"below others":          {[]string{"", pace, htb}, ""},
		"paced above":           {[]string{pace, htb}, ""},
		"above a priority":      {[]string{htb, ""}, `cgroup /x: the limit of workload "w0" does not hold there: htb holds it in a class of one workload, and "w1" has that cgroup`},
		"above a limit":         {[]string{"", htb, pace}, `cgroup /x/x: the limit of workload "w1" does not hold there`},
		"once for all":          {[]string{htb, "", "", ""}, `cgroup /x: the limit of workload "w0"`},
		"with the nearest ones": {[]string{pace, "", "", ""}, `cgroup /x/x/x: the limit of workload "w0" does not hold there for what has a tag`},
	} {
		t.Run(name, func(t *testing.T) {
			p, f := nested(t, "eth0: {}", c.limits...)
			w := wanted(t, p, f, IDs{})
			if c.want == "" && len(w.Unbound) != 0 || c.want != "" && (len(w.Unbound) != 1 || !strings.HasPrefix(w.Unbound[0].Message, c.want)) {
				t.Errorf("%+v, want %q", w.Unbound, c.want)
			}
			for _, u := range w.Unbound {
				if u.Line == 0 || u.Help == "" {
					t.Errorf("no place, or no help: %+v", u)
				}
				for _, j := range Judge(p, w, nil, Measured{}) {
					if j.Workload == u.Workload && j.Promise == PromiseEgress && j.Link != EveryLink && (j.Verdict != Broken || j.Evidence != u.Message) {
						t.Errorf("status: %+v", j)
					}
					if j.Workload == u.Workload && j.Link == EveryLink && j.Verdict != Unprovable {
						t.Errorf("of what is paced: %+v", j)
					}
				}
			}
		})
	}
}
