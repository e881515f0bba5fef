// Command features prints what this kernel has of all that a test may need,
// one line a feature, or with -json as the one event from which testsum takes
// the answers of another kernel than its own. It changes nothing.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/weir-net/weir/internal/testutil/feature"
	"github.com/weir-net/weir/internal/tools/testevent"
)

func main() {
	asJSON := flag.Bool("json", false, "print one test event for testsum")
	flag.Parse()
	have := map[string]bool{}
	for _, name := range feature.Names() {
		ok, err := feature.Has(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "features:", err)
		}
		have[name] = ok
		if !*asJSON {
			fmt.Printf("%-26s %v\n", name, ok)
		}
	}
	if *asJSON {
		if err := json.NewEncoder(os.Stdout).Encode(testevent.Event{Action: "features", Features: have, Kernel: release()}); err != nil {
			fmt.Fprintln(os.Stderr, "features:", err)
			os.Exit(1)
		}
	}
}

// release is what uname -r says.
func release() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		fmt.Fprintln(os.Stderr, "features:", err)
	}
	return strings.TrimSpace(string(text))
}
