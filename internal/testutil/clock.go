package testutil

import "github.com/weir-net/weir/internal/testutil/feature"

// VirtualClock reports whether this is a machine whose time is what its own CPU has done
// (test/vm/run --clock virtual): nothing else on the host makes it late, so a test can hold
// times and rates to bounds that elsewhere are for a quiet host.
func VirtualClock() bool {
	ok, _ := feature.Has("virtual clock")
	return ok
}
