package inside

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/weir-net/weir/internal/host"
)

// Argument is the first argument with which this package starts its own executable again: a
// main that finds it hands the rest to Main.
const Argument = "lab-inside"

// Files are what a Place has below /etc and /run: contents by path, and what links there name.
// Directories above them are made.
type Files struct {
	Texts map[string]string `json:"texts"`
	Links map[string]string `json:"links"`
}

// A Place is where programs run inside of a lab's host.
type Place struct {
	netns, cgroup string
	keeper        *exec.Cmd // a process that has the mount namespace, and does nothing
	stdin         io.Closer
	mounts        *os.File
}

// New makes a place: programs there have a network namespace, named by a path that setns takes, and
// begin in a cgroup (a v2 directory). Close ends it; with the process that made it, it ends by itself.
func New(netns, cgroup string, files Files) (*Place, error) {
	p := &Place{netns: netns, cgroup: cgroup, keeper: exec.Command("/proc/self/exe", Argument, verbKeep)}
	if err := p.open(files); err != nil {
		return nil, fmt.Errorf("make a place for programs: %w", err)
	}
	return p, nil
}

func (p *Place) open(files Files) error {
	order, err := json.Marshal(files)
	if err != nil {
		return err
	}
	stdin, err := p.keeper.StdinPipe()
	if err != nil {
		return err
	}
	p.stdin = stdin
	stdout, err := p.keeper.StdoutPipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	dir, err := os.Open(p.cgroup)
	if err != nil {
		return errors.Join(err, stdin.Close(), stdout.Close())
	}
	defer dir.Close()
	p.keeper.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Setpgid: true, UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	if err := p.keeper.Start(); err != nil {
		return errors.Join(err, stdin.Close(), stdout.Close())
	}
	if _, err = stdin.Write(append(order, '\n')); err == nil {
		err = told(stdout)
	}
	if err == nil {
		p.mounts, err = os.Open(fmt.Sprintf("/proc/%d/ns/mnt", p.keeper.Process.Pid))
	}
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return nil
}

// told reads the keeper's answer: an empty line, or what went wrong.
func told(stdout io.Reader) error {
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("its keeper has ended: %w", err)
	}
	if line != "\n" {
		return errors.New(line[:len(line)-1])
	}
	return nil
}

// Root is the place's /, as a path for this process.
func (p *Place) Root() string { return fmt.Sprintf("/proc/%d/root", p.keeper.Process.Pid) }

// Close ends the place. Programs that still run there keep its files for as long.
func (p *Place) Close() error {
	err := p.stdin.Close()
	if p.mounts != nil {
		err = errors.Join(err, p.mounts.Close())
	}
	if killed := p.keeper.Process.Kill(); !errors.Is(killed, os.ErrProcessDone) {
		err = errors.Join(err, killed)
	}
	var exit *exec.ExitError
	if waited := p.keeper.Wait(); !errors.As(waited, &exit) {
		err = errors.Join(err, waited)
	}
	return err
}

// Run runs a program, by its path, in the place: in a VRF, or with "" outside of any. It returns
// what that prints and its exit code.
func (p *Place) Run(ctx context.Context, vrf string, command ...string) (out string, code int, err error) {
	return p.start(ctx, append([]string{verbRun, vrf}, command...))
}

// Hear connects to a TCP port from the place, as Run would run a program that does, and returns
// what is said there; ok is false where nobody says anything.
func (p *Place) Hear(ctx context.Context, vrf, at string) (said string, ok bool, err error) {
	said, code, err := p.start(ctx, []string{verbHear, vrf, at})
	return said, code == 0, err
}

// start starts this executable again in the place.
func (p *Place) start(ctx context.Context, args []string) (out string, code int, err error) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{Argument}, args...)...)
	// None of the variables by which the C library's resolver is told otherwise.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.ExtraFiles = []*os.File{p.mounts}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	dir, err := os.Open(p.cgroup)
	if err != nil {
		return "", 0, fmt.Errorf("run a program in the lab: %w", err)
	}
	defer dir.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	// A new process has the namespace of the thread that starts it.
	err = host.InNetns(p.netns, cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != exitTrouble && exit.Exited() {
		return stdout.String(), exit.ExitCode(), nil
	}
	if ctx.Err() != nil {
		return "", 0, context.Cause(ctx)
	}
	if err != nil {
		return "", 0, fmt.Errorf("run a program in the lab: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), 0, nil
}
