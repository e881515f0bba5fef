package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal syscall.Signal }

func (i interrupted) Error() string { return "ended by signal: " + i.signal.String() }

// untilSignal returns a context that ends with the first SIGINT, SIGTERM or
// SIGHUP. The second one ends the process as if nobody listened, for the case
// that the end takes too long.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	var listen []os.Signal
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup: to listen would be to be ended by it
			listen = append(listen, s)
		}
	}
	ctx, cancel := context.WithCancelCause(parent)
	if len(listen) == 0 {
		return ctx, func() { cancel(nil) }
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, listen...)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(interrupted{s.(syscall.Signal)})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	return ctx, func() { cancel(nil) }
}
