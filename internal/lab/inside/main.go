package inside

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/host"
)

// What Main is told to do.
const (
	verbKeep = "keep" // the mount namespace, until standard input ends
	verbRun  = "run"  // VRF COMMAND [ARGUMENTS]
	verbHear = "hear" // VRF ADDRESS:PORT
)

// exitTrouble says that the program could not be run at all.
const exitTrouble = 125

// mountsFD is the descriptor of the place's mount namespace.
const mountsFD = 3

// Main is the main function of the processes of a Place: args are those behind Argument. It returns
// the exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	runtime.LockOSThread() // what follows is of this thread, which becomes the program
	var err error
	switch {
	case len(args) == 1 && args[0] == verbKeep:
		return keep(stdin, stdout)
	case len(args) > 2 && args[0] == verbRun:
		if err = enter(args[1]); err == nil {
			err = unix.Exec(args[2], args[2:], os.Environ())
		}
	case len(args) == 3 && args[0] == verbHear:
		if err = enter(args[1]); err == nil {
			return hear(args[2], stdout, stderr)
		}
	default:
		err = fmt.Errorf("%q is no order", args)
	}
	fmt.Fprintf(stderr, "%v\n", err)
	return exitTrouble
}

// enter brings this thread into the place, and then into a VRF as weir vrf exec does.
func enter(vrf string) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("leave the other threads: %w", err)
	}
	if err := unix.Setns(mountsFD, unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter mount namespace: %w", err)
	}
	if err := unix.Close(mountsFD); err != nil {
		return fmt.Errorf("enter mount namespace: %w", err)
	}
	if vrf == "" {
		return nil
	}
	if err := agent.EnterVRF(vrf); err != nil {
		return fmt.Errorf("enter VRF %s: %w", vrf, err)
	}
	return host.MountResolver(agent.Resolver{Root: "/"}.OwnFile(vrf))
}

// hear prints what is said at an address.
func hear(at string, stdout, stderr io.Writer) int {
	conn, err := (&net.Dialer{Timeout: 3 * time.Second}).Dial("tcp", at)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
		_, err = io.Copy(stdout, conn)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// keep makes the place's files, says so, and waits until nobody needs them.
func keep(stdin io.Reader, stdout io.Writer) int {
	in := bufio.NewReader(stdin)
	var files Files
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &files)
	}
	if err == nil {
		err = files.furnish()
	}
	if err != nil {
		fmt.Fprintln(stdout, err)
		return exitTrouble
	}
	fmt.Fprintln(stdout)
	_, _ = in.ReadString('\n') // the end, however it comes
	return 0
}
