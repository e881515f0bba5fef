package workload

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// An Exe is the file that a process executes.
type Exe struct {
	ID   plan.ExeID
	Path string // in the mount namespace of the process; without " (deleted)"
}

// devices knows the superblocks behind mounts. The kernel side sees
// super_block->s_dev, but stat reports another device on btrfs (one per
// subvolume) and on some overlays; mountinfo prints s_dev itself.
type devices struct{ byMount map[uint64]uint32 }

// id identifies a file, symbolic links followed. The mount is looked up in our
// mount namespace, then in that of the process, if one is given.
func (d *devices) id(dir int, path string, process *procDir) (plan.ExeID, error) {
	var st unix.Statx_t
	if err := unix.Statx(dir, path, 0, unix.STATX_INO|unix.STATX_MNT_ID, &st); err != nil {
		return plan.ExeID{}, err
	}
	id := plan.ExeID{Device: kernelDevice(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return id, nil // before 5.8: right on all filesystems but those
	}
	if d.byMount == nil {
		d.byMount = make(map[uint64]uint32)
		d.learn("/proc/self/mountinfo")
	}
	if _, ok := d.byMount[st.Mnt_id]; !ok && process != nil {
		d.learn(fmt.Sprintf("/proc/self/fd/%d/mountinfo", *process))
	}
	if device, ok := d.byMount[st.Mnt_id]; ok {
		id.Device = device
	}
	return id, nil
}

// learn adds the mounts of a mount namespace: their ids are unique among all.
// What can not be read leaves the device that stat gave.
func (d *devices) learn(mountinfo string) {
	mounts, err := readMountinfo(mountinfo)
	if err != nil {
		return
	}
	for _, m := range mounts {
		d.byMount[m.id] = m.device
	}
}

// exe reads the executable of a process, or the zero Exe.
func (d *devices) exe(dir procDir) Exe {
	path, err := dir.link("exe")
	if err != nil {
		return Exe{}
	}
	id, err := d.id(int(dir), "exe", &dir)
	if err != nil {
		return Exe{}
	}
	return Exe{ID: id, Path: strings.TrimSuffix(path, " (deleted)")}
}
