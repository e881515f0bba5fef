package testutil

import (
	"os"
	"slices"
	"strings"
)

// VirtualClock reports whether this is a machine whose time is what its own CPU has done
// (test/vm/run --clock virtual): nothing else on the host makes it late, so a test can hold
// times and rates to bounds that elsewhere are for a quiet host.
func VirtualClock() bool {
	line, _ := os.ReadFile("/proc/cmdline") // none: no machine of ours
	return slices.Contains(strings.Fields(string(line)), "weir.clock=virtual")
}
