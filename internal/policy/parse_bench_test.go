package policy

import (
	"fmt"
	"strings"
	"testing"
)

// manyWorkloads is a policy of n workloads with two selectors each.
func manyWorkloads(n int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nlinks:\n  eth0: {rate: 1Gbit}\nworkloads:\n")
	for i := range n {
		fmt.Fprintf(&b, "  w%d:\n    match: [{cgroup: /batch/w%d/**}, {port: %d, protocol: tcp, cidr: 10.%d.%d.0/24}]\n    priority: {eth0: 2, default: 4}\n",
			i, i, i%60000+1, i/256%256, i%256)
	}
	return []byte(b.String())
}

// BenchmarkParse10000 reads 1.3 MB; an apply of such a policy is to take less
// than a second in all.
func BenchmarkParse10000(b *testing.B) {
	src := manyWorkloads(10_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := Parse("policy.yaml", src); err != nil {
			b.Fatal(err)
		}
	}
}

func TestParseTenThousandWorkloads(t *testing.T) {
	p, err := Parse("policy.yaml", manyWorkloads(10_000))
	if err != nil {
		t.Fatal(err)
	}
	last := p.Workloads[len(p.Workloads)-1]
	if len(p.Workloads) != 10_000 || last.Name != "w9999" || last.Match[0].Cgroup.Pattern != "/batch/w9999/**" {
		t.Errorf("%d workloads, last %+v", len(p.Workloads), last)
	}
}
