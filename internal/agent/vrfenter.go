package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/bind"
	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/workload"
)

// What a caller has to tell apart. Each is wrapped with what it is about.
var (
	ErrUnknownVRF = errors.New("no such VRF here")
	ErrNoCgroup2  = errors.New("no cgroup2 mount here")
)

// DefaultVRF names what is in no VRF, as it does in iproute2.
const DefaultVRF = "default"

// EnterVRF moves this process into a VRF of its network namespace: sockets that it makes from
// now on, and those of its children, are bound to the VRF's device. It asks for no more
// privileges than the kernel does, which is none where somebody has prepared the cgroup: the
// error wraps fs.ErrPermission then.
func EnterVRF(name string) error {
	index, err := indexOfVRF(name)
	if err != nil {
		return err
	}
	h, err := workload.FindHierarchies()
	if err != nil {
		return err
	}
	if h.V2 == "" {
		return ErrNoCgroup2
	}
	self, err := workload.ReadProcess(uint32(os.Getpid()))
	if err != nil {
		return err
	}
	if _, err := self.CgroupDir(h.V2); err != nil {
		return err
	}
	netns, err := host.NetnsName()
	if err != nil {
		return err
	}
	if name == DefaultVRF {
		name = ""
	}
	return bind.Enter(filepath.Join(h.V2, plan.VRFCgroup(self.Cgroup2, netns, name)), index)
}

// indexOfVRF is 0 for [DefaultVRF].
func indexOfVRF(name string) (int, error) {
	if name == DefaultVRF {
		return 0, nil
	}
	vrfs, err := host.VRFDevices()
	if err != nil {
		return 0, err
	}
	v, ok := plan.VRFFacts{VRFs: vrfs}.VRF(name)
	if !ok {
		return 0, absentVRF(name, vrfs)
	}
	return v.Index, nil
}

// absentVRF says whether there could be one at all.
func absentVRF(name string, vrfs []plan.VRFDevice) error {
	if len(vrfs) == 0 && errors.Is(host.VRFPossible(), host.ErrNoVRF) {
		return host.ErrNoVRF
	}
	return fmt.Errorf("VRF %q: %w", name, ErrUnknownVRF)
}

// PinVRF keeps a program that binds to a VRF in the BPF file system, for a service manager.
func PinVRF(name, path string) error {
	index, err := indexOfVRF(name)
	if err != nil {
		return err
	}
	return bind.Pin(path, index)
}

// A VRFIdentity says which VRF a process is in.
type VRFIdentity struct {
	SchemaVersion string `json:"schema_version"`
	PID           uint32 `json:"pid"`
	Name          string `json:"name"` // of the process
	VRF           string `json:"vrf"`  // "" for none
	By            string `json:"by"`   // what tells: cgroup, program or sockets; "" for none
	Cgroup        string `json:"cgroup"`
}

// IdentifyVRF says which VRF the new sockets of a process are bound to: by the name of its
// cgroup, as ip vrf identify has it, by the program that binds them, or, where neither tells, by
// the sockets that it has, if all that are bound agree; of this process by one that it makes. For
// the latter two of others one may have to be root; what one may not see tells nothing.
func IdentifyVRF(ctx context.Context, pid uint32) (VRFIdentity, error) {
	p, err := workload.ReadProcess(pid)
	if err != nil {
		return VRFIdentity{}, err
	}
	id := VRFIdentity{SchemaVersion: schemaVersion, PID: pid, Name: p.Name, Cgroup: p.Cgroup2}
	vrfs, err := vrfsOfProcess(pid)
	if err != nil {
		return id, err
	}
	if len(vrfs) == 0 {
		return id, nil
	}
	h, err := workload.FindHierarchies()
	if err != nil {
		return id, err
	}
	var bound []string
	if dir, outside := p.CgroupDir(h.V2); h.V2 != "" && outside == nil {
		indices, err := bind.Devices(dir)
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return id, err
		}
		for _, index := range indices {
			if name := vrfOfDevice(vrfs, index); name != "" {
				bound = append(bound, name)
			}
		}
	}
	told := plan.VRFOfCgroup(p.Cgroup2)
	if _, ok := (plan.VRFFacts{VRFs: vrfs}).VRF(told); ok && (len(bound) == 0 || slices.Contains(bound, told)) {
		id.VRF, id.By = told, "cgroup"
		return id, nil
	}
	if len(bound) > 0 {
		id.VRF, id.By = bound[len(bound)-1], "program" // the topmost cgroup's runs last
		return id, nil
	}
	if pid == uint32(os.Getpid()) { // it can make one and look
		index, err := bind.New()
		if name := vrfOfDevice(vrfs, index); name != "" {
			id.VRF, id.By = name, "sockets"
			return id, nil
		}
		return id, err
	}
	if id.VRF, err = vrfOfSockets(ctx, p, vrfs); id.VRF != "" {
		id.By = "sockets"
	}
	return id, err
}

// vrfsOfProcess lists the VRFs of a process's network namespace.
func vrfsOfProcess(pid uint32) (vrfs []plan.VRFDevice, err error) {
	theirs := fmt.Sprintf("/proc/%d/ns/net", pid)
	path := theirs
	there, err := os.Readlink(theirs)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("read network namespace of process %d: %w", pid, err)
	}
	// To enter one's own takes a privilege, too. Who may not see the other's takes it for
	// this one, as ip vrf identify does.
	if here, hereErr := os.Readlink("/proc/thread-self/ns/net"); err != nil || hereErr == nil && here == there {
		path = ""
	}
	err = host.InNetns(path, func() (err error) { vrfs, err = host.VRFDevices(); return err })
	return vrfs, err
}

// vrfOfSockets is the VRF of all of a process's sockets that are bound to a device.
func vrfOfSockets(ctx context.Context, p workload.Process, vrfs []plan.VRFDevice) (string, error) {
	found := ""
	for s, err := range workload.Sockets(p) {
		if errors.Is(err, fs.ErrPermission) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		index, err := bind.Of(s.FD)
		s.Close()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return "", err
		}
		if index == 0 {
			continue
		}
		name := vrfOfDevice(vrfs, index)
		if name == "" || found != "" && name != found {
			return "", nil
		}
		found = name
	}
	return found, nil
}

// vrfOfDevice is the VRF that a device is, or is in.
func vrfOfDevice(vrfs []plan.VRFDevice, index int) string {
	for _, v := range vrfs {
		if v.Index == index || slices.ContainsFunc(v.Members, func(m plan.VRFMember) bool { return m.Index == index }) {
			return v.Name
		}
	}
	return ""
}
