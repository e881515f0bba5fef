package bpf

import (
	"fmt"

	"github.com/cilium/ebpf/btf"
)

// ControllerIndex returns the place of a v1 controller in the kernel's list of
// controllers, which depends on how the kernel was built; -1 for no controller.
func ControllerIndex(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	if name == "blkio" {
		name = "io" // its name since v2
	}
	spec, err := kernelTypes.Kernel()
	if err != nil {
		return -1, fmt.Errorf("read kernel types: %w", err)
	}
	var ids *btf.Enum
	if err := spec.TypeByName("cgroup_subsys_id", &ids); err != nil {
		return -1, fmt.Errorf("find v1 controllers of this kernel: %w", err)
	}
	for _, v := range ids.Values {
		if v.Name == name+"_cgrp_id" {
			return int(v.Value), nil
		}
	}
	return -1, fmt.Errorf("find v1 controller %q: this kernel has none", name)
}
