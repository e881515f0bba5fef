package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// Where the people and the log of a host are.
const (
	Terminals = "/dev/pts"
	SystemLog = "/dev/log"
)

// Wall writes a text to all terminals below a directory, as wall(1) does, and
// returns how many took it. A terminal that is stopped or full is passed over:
// nobody is waited for.
func Wall(dir, text string) (reached int) {
	paths, err := filepath.Glob(filepath.Join(dir, "[0-9]*"))
	if err != nil {
		return 0
	}
	// A bell, a line of its own whatever stands there, and no control characters
	// of others.
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	message := "\r\n\a" + strings.Join(printable(lines), "\r\n") + "\r\n"
	for _, path := range paths {
		if write(path, message) == nil {
			reached++
		}
	}
	return reached
}

func printable(lines []string) []string {
	for i, line := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, line)
	}
	return lines
}

func write(terminal, message string) error {
	fd, err := unix.Open(terminal, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		return err // ptmx, or no terminal at all
	}
	_, err = unix.Write(fd, []byte(message))
	return err
}

// Log sends a text to the system log at the priority warning of the facility
// daemon, in the form of syslog(3), which journald takes too.
func Log(socket, tag, text string) error {
	const warning, daemon = 4, 3
	c, err := net.DialTimeout("unixgram", socket, time.Second)
	end := ""
	if errors.Is(err, unix.EPROTOTYPE) { // syslog-ng may listen on a stream
		c, err = net.DialTimeout("unix", socket, time.Second)
		end = "\n"
	}
	if err != nil {
		return fmt.Errorf("write system log: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	line := fmt.Sprintf("<%d>%s %s[%d]: %s", daemon<<3|warning, time.Now().Format(time.Stamp), tag, os.Getpid(),
		strings.ReplaceAll(text, "\n", "; "))
	if _, err := c.Write([]byte(line + end)); err != nil {
		return fmt.Errorf("write system log: %w", err)
	}
	return nil
}
