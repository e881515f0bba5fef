package workload

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// LargestBuffers returns the largest buffers that an application may ask for a socket, in
// bytes as the kernel counts them: twice net.core.wmem_max and net.core.rmem_max.
func LargestBuffers() (send, receive uint32, err error) {
	if send, err = largestBuffer("wmem_max"); err != nil {
		return 0, 0, err
	}
	receive, err = largestBuffer("rmem_max")
	return send, receive, err
}

func largestBuffer(name string) (uint32, error) {
	text, err := os.ReadFile("/proc/sys/net/core/" + name)
	if err != nil {
		return 0, fmt.Errorf("read the largest buffer: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("read the largest buffer: net.core.%s: %w", name, err)
	}
	return uint32(2 * n), nil
}
