package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// WorkerMain is the main function of a worker: it follows orders, one JSON
// object a line, until its input ends, and returns the exit status.
func WorkerMain(stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := worker{out: json.NewEncoder(stdout)}
	defer w.stop()
	lines := bufio.NewScanner(stdin)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			fmt.Fprintf(stderr, "traffic worker: read order: %v\n", err)
			return 1
		}
		if err := w.out.Encode(w.follow(ctx, o)); err != nil {
			return 1 // nobody is left to tell
		}
	}
	return 0
}

type worker struct {
	out     *json.Encoder
	streams *Streams
}

func (w *worker) follow(ctx context.Context, o order) answer {
	switch o.Verb {
	case "send":
		w.stop()
		to, err := netip.ParseAddrPort(o.To)
		if err != nil {
			return answer{Error: err.Error()}
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		w.streams, err = Send(ctx, Where{To: to, Congestion: o.Congestion, Pace: o.Pace}, o.Streams)
		if err != nil {
			return answer{Error: err.Error()}
		}
		return answer{}
	case "stop":
		return answer{Sent: w.stop()}
	}
	return answer{Error: fmt.Sprintf("unknown order %q", o.Verb)}
}

func (w *worker) stop() uint64 {
	if w.streams == nil {
		return 0
	}
	sent := w.streams.Stop()
	w.streams = nil
	return sent
}
