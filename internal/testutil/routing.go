package testutil

import (
	"fmt"
	"strings"
)

// Routing is all that a VRF could leave behind in a namespace, in the words of ip and of
// sysctls. Times are left out, and so is what the kernel finds out anew.
func (n *Namespace) Routing() string {
	n.t.Helper()
	var text strings.Builder
	for _, args := range []string{
		"vrf", "rule", "-6 rule", "mrule", "-6 mrule", "route show table all", "-6 route show table all", "addr", "neigh show nud permanent", "-6 neigh show nud permanent", "-d -o link",
	} {
		fmt.Fprintf(&text, "$ ip %s\n%s\n", args, Lasting(n.Output("ip", strings.Fields(args)...)))
	}
	text.WriteString(n.Output("sh", "-c", "cd /proc/sys/net; for f in ipv4/*l3mdev_accept ipv6/conf/all/keep_addr_on_down; do echo $f $(cat $f); done"))
	return text.String()
}
