package screen

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// A Screen is what is shown.
type Screen[T any] struct {
	Interval time.Duration // from one reading to the next
	Times    int           // so many readings; 0: until it is ended
	// Read takes a reading. It runs beside all else, never twice at once, and shall end soon
	// after its context.
	Read func(context.Context) (T, error)
	// Render makes a text of the last reading, lines with a newline each. What is too much for
	// the height is cut off below, and for the width at the right. It is for a height of 0 where
	// the text stays and has no screen.
	Render func(reading T, width, height int) string
	// Key is called with each key but q, which ends the screen: "a", "up", "down", "left",
	// "right", "home", "end", "enter". The screen is drawn again after it. nil ignores all.
	// It runs where Render does.
	Key func(key string)
}

// Each takes the readings without a terminal, and hands each to show.
func (s Screen[T]) Each(ctx context.Context, show func(T) error) error {
	for n := 1; ; n++ {
		begun := time.Now()
		reading, err := s.Read(ctx)
		if err == nil {
			err = show(reading)
		}
		if err != nil || n == s.Times {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(s.Interval - time.Since(begun)):
		}
	}
}

// Run shows the readings on a terminal until q is pressed, the context ends, which is then
// the error, or all readings were shown. in is where keys come from; nil, or what is no
// terminal, has none.
func (s Screen[T]) Run(ctx context.Context, in, out *os.File) (err error) {
	t, err := open(in, out)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	readings := make(chan reading[T])
	over := make(chan struct{}) // the reader's end
	defer func() {
		t.close() // first, and whatever happened: a trace shall be seen where it belongs
		cancel()
		<-over
	}()
	go func() {
		defer close(over)
		s.feed(ctx, readings)
	}()
	return s.show(ctx, t, readings)
}

// show draws what is read until there is a reason to end.
func (s Screen[T]) show(ctx context.Context, t *terminal, readings <-chan reading[T]) error {
	var last *T
	draw := func() error {
		if last == nil {
			return nil
		}
		width, height := t.size()
		return t.draw(s.Render(*last, width, height), height)
	}
	for n := 0; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case r := <-readings:
			if r.panicked != "" {
				panic(r.panicked)
			}
			if r.err != nil {
				return r.err
			}
			last = &r.value
			n++
			if err := draw(); err != nil || n == s.Times {
				return err
			}
		case key := <-t.keys:
			if key == "q" {
				return nil
			}
			if s.Key != nil {
				s.Key(key)
			}
			if err := draw(); err != nil {
				return err
			}
		case sig := <-t.signals:
			if err := t.answer(sig); err != nil {
				return err
			}
			if err := draw(); err != nil {
				return err
			}
		}
	}
}

// A reading is a value, or why there is none.
type reading[T any] struct {
	value    T
	err      error
	panicked string // what the reader panicked with, and where
}

// feed takes a reading each interval until the context ends or one fails.
func (s Screen[T]) feed(ctx context.Context, to chan<- reading[T]) {
	for {
		begun := time.Now()
		r := s.take(ctx)
		select {
		case <-ctx.Done():
			return
		case to <- r:
		}
		if r.err != nil || r.panicked != "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.Interval - time.Since(begun)):
		}
	}
}

// take takes one reading. A panic is told to whoever has the terminal: in a goroutine of its
// own it would end the process before anybody could give that back.
func (s Screen[T]) take(ctx context.Context) (r reading[T]) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
		}
	}()
	r.value, r.err = s.Read(ctx)
	return r
}
