package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// A signal ends a program that waits for input, with the code of shells.
func TestSignalsEndWithTheCodesOfShells(t *testing.T) {
	interruptible(t)
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		t.Run(signal.String(), func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := weir(t, "check", pipe)
			var out buffers
			cmd.Stdout, cmd.Stderr = &out.stdout, &out.stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// This returns when the program has opened its end, and it listens for
			// signals long before.
			silent, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != want {
				t.Errorf("got %v, want exit code %d", err, want)
			}
			if out.stderr.Len() > 0 {
				t.Errorf("it complains: %s", &out.stderr)
			}
		})
	}
}

// interruptible makes what this test starts heed SIGINT and SIGHUP. A program whose
// parent ignores one, as test2json and nohup do, ignores it too; one whose parent
// catches it does not.
func interruptible(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
}

// Under nohup a hangup does nothing, as everywhere.
func TestHangupIsIgnoredUnderNohup(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap "" HUP; exec "$0" "$@"`, named(t), "check", pipe)
	var out buffers
	cmd.Stdout, cmd.Stderr = &out.stdout, &out.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("version: 2\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitPolicy {
		t.Errorf("got %v, want it to go on and find the policy wrong: %s", err, &out.stderr)
	}
}
