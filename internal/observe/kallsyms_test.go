package observe

import (
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestWorkIn(t *testing.T) {
	for function, want := range map[string]meterWork{
		"tcp_sendmsg_locked": meterWorkWORK_SEND, "udpv6_recvmsg": meterWorkWORK_RECV, "inet_sendmsg": meterWorkWORK_SEND,
		"napi_threaded_poll": meterWorkWORK_THREAD, "tcp_splice_read": meterWorkWORK_RECV,
	} {
		if got, is := workIn(function); !is || got != want {
			t.Errorf("%s is %v, %v", function, got, is)
		}
	}
	for _, function := range []string{"unix_stream_sendmsg", "tcp_sendmsg_fastopen", "sock_sendmsg"} {
		if _, is := workIn(function); is {
			t.Errorf("%s is known", function)
		}
	}
}

// The functions of a running kernel have an end, do not overlap, and are those that were asked for.
func TestFindFunctions(t *testing.T) {
	testutil.Needs(t, "root")
	want := []string{"tcp_sendmsg", "udp_recvmsg"}
	found, err := findFunctions(func(name string) bool { return slices.Contains(want, name) })
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, f := range found {
		seen[f.name] = true
		if f.to <= f.from || f.to-f.from > 64<<10 {
			t.Errorf("%s is from %x to %x", f.name, f.from, f.to)
		}
		if i > 0 && f.from < found[i-1].to {
			t.Errorf("%s begins within %s", f.name, found[i-1].name)
		}
	}
	for _, name := range want {
		if !seen[name] {
			t.Errorf("%s was not found", name)
		}
	}
}

func TestFindAccounting(t *testing.T) {
	way, err := FindAccounting()
	if err != nil || way == "" {
		t.Fatal(way, err)
	}
	// Every kernel says somewhere how it was built; where it does it shall be the same.
	if built, known := builtWith(t, "CONFIG_IRQ_TIME_ACCOUNTING"); known && built != (way == "irq_time") {
		t.Errorf("found %s, built with irq time accounting: %v", way, built)
	}
}

// builtWith reads whether the kernel was built with an option, where it says so.
func builtWith(t *testing.T, option string) (built, known bool) {
	t.Helper()
	f, err := os.Open("/proc/config.gz")
	if err != nil {
		return false, false
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), "\n"+option+"=y\n"), true
}
