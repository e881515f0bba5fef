package netprio

import "errors"

var (
	// ErrNoController says that the kernel was built without net_prio, or
	// without cgroup v1.
	ErrNoController = errors.New("kernel without the net_prio controller")

	// ErrDisabled says that the boot command line disables the controller
	// (cgroup_disable= or cgroup_no_v1=).
	ErrDisabled = errors.New("net_prio controller disabled at boot")

	// ErrBusy says that the controller is held by another hierarchy, which is
	// not mounted here and can not be joined.
	ErrBusy = errors.New("net_prio controller in use by another hierarchy")

	// ErrNetns says that the calling thread is not in the initial network
	// namespace, whose interfaces are the only ones that net_prio knows.
	ErrNetns = errors.New("net_prio works in the initial network namespace only")

	// ErrNoGroup says that a group does not exist: Apply was not told of it.
	ErrNoGroup = errors.New("no such net_prio group")

	// ErrGone says that a process has exited.
	ErrGone = errors.New("no such process")
)
