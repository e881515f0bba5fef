package screen

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A keyboard reads keys until it is closed.
type keyboard struct {
	in         *os.File
	keys       chan<- string
	wake, stop *os.File      // a pipe: closing stop ends a wait for keys
	done       chan struct{} // nobody takes keys any more
	over       chan struct{} // and none is read
}

// listen reads the keys of a terminal; nil if there is none.
func listen(in *os.File, keys chan<- string) (*keyboard, error) {
	if in == nil {
		return nil, nil
	}
	if _, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err != nil {
		return nil, nil
	}
	wake, stop, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	k := &keyboard{in: in, keys: keys, wake: wake, stop: stop, done: make(chan struct{}), over: make(chan struct{})}
	go k.read()
	return k, nil
}

func (k *keyboard) close() {
	if k == nil {
		return
	}
	close(k.done)
	k.stop.Close()
	<-k.over
	k.wake.Close()
}

// read waits in poll: a read of a terminal could not be ended.
func (k *keyboard) read() {
	defer close(k.over)
	wait := []unix.PollFd{{Fd: int32(k.in.Fd()), Events: unix.POLLIN}, {Fd: int32(k.wake.Fd()), Events: unix.POLLIN}}
	b := make([]byte, 64)
	for {
		switch _, err := unix.Poll(wait, -1); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || wait[1].Revents != 0:
			return
		}
		n, err := unix.Read(int(k.in.Fd()), b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			return // the terminal is gone
		}
		for _, key := range parse(b[:n]) {
			select {
			case k.keys <- key:
			case <-k.done:
				return
			}
		}
	}
}

// named are the keys that send more than a character, as terminals send them in either of
// their modes for arrows.
var named = map[string]string{
	"[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
	"OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
}

// parse names the keys in what was read at once. What has no name is none.
func parse(b []byte) (keys []string) {
	for len(b) > 0 {
		switch c := b[0]; {
		case c == 0x1b:
			n := sequence(b)
			if name := named[string(b[1:n])]; name != "" {
				keys = append(keys, name)
			}
			b = b[n:]
			continue
		case c == '\r' || c == '\n':
			keys = append(keys, "enter")
		case c > ' ' && c < 0x7f:
			keys = append(keys, string(c))
		}
		b = b[1:]
	}
	return keys
}

// sequence is how many bytes the sequence has that begins with an escape.
func sequence(b []byte) int {
	if len(b) < 2 || b[1] != '[' && b[1] != 'O' {
		return 1
	}
	for i := 2; i < len(b); i++ {
		if b[i] >= '@' && b[i] <= '~' {
			return i + 1
		}
	}
	return len(b)
}
