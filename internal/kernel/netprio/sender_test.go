package netprio

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendOnCommand is the sender process. Its commands:
//
//	send N      send N packets of the socket that was opened at the start
//	open        use a new socket from now on
//	priority N  set SO_PRIORITY of the socket
//	child N     have a new child send N packets of a socket of its own
//	fork        start a child that lives as long as the sender; prints its pid
func sendOnCommand(target string) error {
	conn, err := net.Dial("udp4", target)
	if err != nil {
		return err
	}
	fmt.Println("ok")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		word, argument, _ := strings.Cut(lines.Text(), " ")
		number, _ := strconv.Atoi(argument)
		answer := ""
		switch word {
		case "send":
			for range number {
				if _, err := conn.Write(make([]byte, 100)); err != nil {
					return err
				}
			}
		case "open":
			if conn, err = net.Dial("udp4", target); err != nil {
				return err
			}
		case "priority":
			raw, err := conn.(*net.UDPConn).SyscallConn()
			if err != nil {
				return err
			}
			if err := raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, number)
			}); err != nil {
				return err
			}
		case "child":
			cmd := exec.Command("/proc/self/exe")
			cmd.Stdin = strings.NewReader(fmt.Sprintf("send %d\n", number))
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\nok\n" {
				return fmt.Errorf("child: %w: %s", err, out)
			}
		case "fork":
			cmd := exec.Command("sleep", "60")
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				return err
			}
			answer = strconv.Itoa(cmd.Process.Pid)
		}
		fmt.Println(strings.TrimSpace("ok " + answer))
	}
	return lines.Err()
}
