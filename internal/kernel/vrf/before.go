package vrf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// before is what holds for all VRFs of a namespace, as it was without ours.
type before struct {
	Sysctls    map[string]string  `json:"sysctls"`
	L3mdev     map[uint8]bool     `json:"l3mdev"`      // family -> there was a rule where the kernel makes its own
	LocalFirst map[uint8][]uint32 `json:"local_first"` // family -> priorities of the local table before it
	LocalLast  map[uint8][]uint32 `json:"local_last"`  // and after it
}

// sysctls are what services outside of any VRF need to answer in all.
var sysctls = map[string]string{
	"net/ipv4/tcp_l3mdev_accept": "1",
	"net/ipv4/udp_l3mdev_accept": "1",
}

func lookBefore() (*before, error) {
	b := &before{map[string]string{}, map[uint8]bool{}, map[uint8][]uint32{}, map[uint8][]uint32{}}
	for name := range sysctls {
		value, err := readSysctl(name)
		if err != nil {
			return nil, err
		}
		b.Sysctls[name] = value
	}
	for _, f := range families() {
		l3mdev, first, last, err := rulesAre(f)
		if err != nil {
			return nil, err
		}
		b.L3mdev[f], b.LocalFirst[f], b.LocalLast[f] = slices.Contains(l3mdev, l3mdevPriority), first, last
	}
	return b, nil
}

// common makes services outside of any VRF answer in all.
func (w *work) common() error {
	for _, name := range slices.Sorted(maps.Keys(sysctls)) {
		value, err := readSysctl(name)
		if err != nil {
			return err
		}
		if value == sysctls[name] {
			continue
		}
		err = w.step("set "+strings.ReplaceAll(name, "/", "."), func() error { return writeSysctl(name, sysctls[name]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// restore puts back what holds for all VRFs, and forgets.
func (w *work) restore() error {
	m := w.memory
	if m.Before != nil {
		err := w.step("put rules and sysctls back as they were before", func() error {
			if err := restoreRules(m.Before); err != nil {
				return err
			}
			for name, value := range m.Before.Sysctls {
				if err := writeSysctl(name, value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	m.Before = nil
	return w.room.save(m)
}

// families are the address families that the namespace has.
func families() []uint8 {
	if v, err := readSysctl("net/ipv6/conf/all/disable_ipv6"); err != nil || v != "0" {
		return []uint8{unix.AF_INET}
	}
	return []uint8{unix.AF_INET, unix.AF_INET6}
}

// readSysctl reads one of the calling thread's namespace.
func readSysctl(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/proc/sys", name))
	if err != nil {
		return "", fmt.Errorf("read sysctl: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writeSysctl writes one; that of a device that is gone is fine.
func writeSysctl(name, value string) error {
	err := os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write sysctl: %w", err)
	}
	return nil
}
