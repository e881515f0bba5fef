package screen

import (
	"fmt"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// What a terminal is told, as every terminal of today and the Linux console know it: the
// other screen, no cursor and no line that goes on in the next one, and all of that back.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"

	home      = "\x1b[H"
	restOfRow = "\x1b[0m\x1b[K"
	restBelow = "\x1b[J"
)

// A terminal is one that belongs to a screen.
type terminal struct {
	out     *os.File
	before  unix.Termios // as it was, and is again
	signals chan os.Signal
	keys    chan string
	typed   *keyboard // nil: no keys
}

// open takes the terminal; close gives it back.
func open(in, out *os.File) (*terminal, error) {
	before, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("read the terminal's modes: %w", err)
	}
	t := &terminal{out: out, before: *before, signals: make(chan os.Signal, 8), keys: make(chan string)}
	// Stops and their ends, sizes, and the end that the runtime would make of SIGQUIT: a trace
	// over the screen. Those that a program ends with come by the context.
	signal.Notify(t.signals, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT, unix.SIGQUIT)
	if t.typed, err = listen(in, t.keys); err == nil {
		err = t.take()
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// take changes the modes: keys come one by one and are not shown, those that send signals
// still do.
func (t *terminal) take() error {
	modes := t.before
	modes.Lflag &^= unix.ICANON | unix.ECHO
	modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(t.out.Fd()), unix.TCSETS, &modes); err != nil {
		return fmt.Errorf("set the terminal's modes: %w", err)
	}
	_, err := t.out.WriteString(enter)
	return err
}

// give makes the terminal what it was. It may be gone: nobody is there to be told.
func (t *terminal) give() {
	_, _ = t.out.WriteString(leave)
	_ = unix.IoctlSetTermios(int(t.out.Fd()), unix.TCSETSW, &t.before)
}

func (t *terminal) close() {
	t.give()
	signal.Stop(t.signals)
	t.typed.close()
}

// size is the terminal's now, or what nearly all have.
func (t *terminal) size() (width, height int) {
	s, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || s.Col == 0 || s.Row == 0 {
		return 80, 24
	}
	return int(s.Col), int(s.Row)
}

// draw writes the lines of a text over what was there, in one write.
func (t *terminal) draw(text string, height int) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lines = lines[:min(len(lines), height)]
	var b strings.Builder
	b.WriteString(home)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + restOfRow)
	}
	b.WriteString(restBelow)
	_, err := t.out.WriteString(b.String())
	return err
}

// answer does what a signal asks for.
func (t *terminal) answer(s os.Signal) error {
	switch s {
	case unix.SIGTSTP, unix.SIGQUIT:
		t.give()
		raise(s.(unix.Signal))
		return t.take()
	case unix.SIGCONT: // the shell, or whoever had the terminal meanwhile, has other modes
		return t.take()
	}
	return nil // a size is read when it is used
}
