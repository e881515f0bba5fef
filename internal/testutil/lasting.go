package testutil

import "regexp"

var (
	counts = regexp.MustCompile(` (?:refcnt|direct_packets_stat) \d+`)
	flows  = regexp.MustCompile(`(?m)^class (?:cake|fq_codel|sfq) .*\n`)
)

// Lasting is what tc shows of queues without what a packet on its way changes,
// such as one that the kernel sends by itself: counters, and the flows of the moment,
// which fq_codel, cake and sfq list as classes.
func Lasting(out string) string {
	return counts.ReplaceAllString(flows.ReplaceAllString(out, ""), "")
}
