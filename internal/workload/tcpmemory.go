package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/weir-net/weir/internal/plan"
)

// TCPMemory reads what all TCP sockets of the host hold and may hold. The kernel shows the
// limits in the host's own network namespace alone: elsewhere they are not known. What is
// used is exact but for what CPUs keep for their next packets, at most 1 MiB each.
func TCPMemory() (plan.TCPMemory, error) {
	text, err := os.ReadFile("/proc/thread-self/net/sockstat")
	if err != nil {
		return plan.TCPMemory{}, fmt.Errorf("read TCP memory: %w", err)
	}
	var m plan.TCPMemory
	if m.Used, err = parseSockstat(text); err != nil {
		return plan.TCPMemory{}, fmt.Errorf("read TCP memory: %w", err)
	}
	text, err = os.ReadFile("/proc/sys/net/ipv4/tcp_mem")
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("read limits of TCP memory: %w", err)
	}
	fields := bytes.Fields(text)
	for i, limit := range []*uint64{&m.Low, &m.Pressure, &m.Max} {
		if len(fields) != 3 {
			return m, fmt.Errorf("read limits of TCP memory: %q are not three", text)
		}
		if *limit, err = pages(string(fields[i])); err != nil {
			return m, fmt.Errorf("read limits of TCP memory: %w", err)
		}
	}
	return m, nil
}

// parseSockstat finds the memory of TCP in a text such as "TCP: inuse 1 orphan 0 tw 0 alloc 1 mem 158".
func parseSockstat(text []byte) (uint64, error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) == 0 || string(fields[0]) != "TCP:" {
			continue
		}
		for i := 1; i+1 < len(fields); i += 2 {
			if string(fields[i]) == "mem" {
				return pages(string(fields[i+1]))
			}
		}
	}
	return 0, errors.New("parse sockstat: no memory of TCP in it")
}

// pages is a number of pages in bytes.
func pages(text string) (uint64, error) {
	n, err := strconv.ParseInt(text, 10, 64) // what is used is below 0 for a moment where CPUs keep some
	if err != nil {
		return 0, fmt.Errorf("parse pages: %w", err)
	}
	return uint64(max(n, 0)) * uint64(os.Getpagesize()), nil
}
