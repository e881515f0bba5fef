package screen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

// play makes of the test's program one that has a screen.
const play = "WEIR_TEST_SCREEN"

func TestMain(m *testing.M) {
	if part := os.Getenv(play); part != "" {
		os.Exit(player(part))
	}
	testutil.Leaks(m)
}

var errSpent = errors.New("no more readings")

// player shows the number of each reading, the size and the keys, in as many lines as there
// are. Its part says how it ends.
func player(part string) int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	readings, keys := 0, ""
	s := Screen[int]{
		Interval: 20 * time.Millisecond,
		Read: func(context.Context) (int, error) {
			readings++
			switch {
			case part == "fails" && readings == 3:
				return 0, errSpent
			case part == "panics" && readings == 3:
				panic("the reader fell")
			}
			return readings, nil
		},
		Render: func(reading, width, height int) string {
			if part == "draws" && reading == 3 {
				panic("the painter fell")
			}
			return fmt.Sprintf("reading %d at %dx%d %s|\n", reading, width, height, keys) + strings.Repeat("a line\n", height)
		},
		Key: func(key string) { keys += key },
	}
	if part == "three" {
		s.Times = 3
	}
	if err := s.Run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Println("ended:", err)
		return 3
	}
	fmt.Println("ended well")
	return 0
}
