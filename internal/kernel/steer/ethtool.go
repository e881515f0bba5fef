package steer

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// setOfCounters is ETH_SS_STATS.
const setOfCounters = 1

// ifreq is struct ifreq where ethtool's requests are concerned.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data uintptr
	_    [16]byte // the union is as large as struct ifmap
}

// ask hands a request to the driver and has its answer in the same place: a struct of
// linux/ethtool.h, which begins with the number of the request. There must be room for the answer.
func (d *Device) ask(request unsafe.Pointer) error {
	r := ifreq{data: uintptr(request)}
	copy(r.name[:unix.IFNAMSIZ-1], d.Name)
	var pinned runtime.Pinner // the kernel gets its address as a number
	pinned.Pin(request)
	defer pinned.Unpin()
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	if errno != 0 {
		return errno
	}
	return nil
}

// driver is the name of the driver, "" where it does not say.
func (d *Device) driver() string {
	info, err := unix.IoctlGetEthtoolDrvinfo(d.fd, d.Name)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// rssTable reads the queue of each hash.
func (d *Device) rssTable() ([]uint32, error) {
	size := [2]uint32{unix.ETHTOOL_GRXFHINDIR} // struct ethtool_rxfh_indir without entries: asks for their number
	if err := d.ask(unsafe.Pointer(&size)); err != nil {
		return nil, err
	}
	if size[1] == 0 {
		return nil, unix.EOPNOTSUPP
	}
	request := make([]uint32, 2+size[1])
	request[0], request[1] = unix.ETHTOOL_GRXFHINDIR, size[1]
	if err := d.ask(unsafe.Pointer(&request[0])); err != nil {
		return nil, err
	}
	return request[2:], nil
}

// writeTable writes the queue of each hash as a setting has it. Of EvenTable nothing is
// written but that the kernel shall make it, so that it goes on to when queues come or go.
func (d *Device) writeTable(text string) error {
	is, err := d.rssTable()
	if err != nil {
		return err
	}
	table, err := plan.ParseRSSTable(text, len(is))
	if err != nil {
		return err
	}
	request := append([]uint32{unix.ETHTOOL_SRXFHINDIR, uint32(len(table))}, table...)
	return d.ask(unsafe.Pointer(&request[0]))
}

// counters reads what the driver counts, in its order: names may come twice.
func (d *Device) counters() ([]plan.DeviceCounter, error) {
	var info struct { // struct ethtool_sset_info, of one set
		cmd, _ uint32
		mask   uint64
		count  uint32
		_      uint32
	}
	info.cmd, info.mask = unix.ETHTOOL_GSSET_INFO, 1<<setOfCounters
	if err := d.ask(unsafe.Pointer(&info)); err != nil {
		return nil, err
	}
	if info.mask == 0 || info.count == 0 {
		return nil, nil
	}
	const nameSize = 32 // ETH_GSTRING_LEN
	names := make([]uint32, 3+info.count*nameSize/4)
	names[0], names[1], names[2] = unix.ETHTOOL_GSTRINGS, setOfCounters, info.count
	values := make([]uint64, 1+info.count) // its first is two of 32 bits
	head := (*[2]uint32)(unsafe.Pointer(&values[0]))
	head[0], head[1] = unix.ETHTOOL_GSTATS, info.count
	if err := d.ask(unsafe.Pointer(&names[0])); err != nil {
		return nil, err
	}
	if err := d.ask(unsafe.Pointer(&values[0])); err != nil {
		return nil, err
	}
	if n := min(names[2], head[1]); n < info.count { // some went meanwhile
		return nil, fmt.Errorf("%d counters, and %d names", head[1], names[2])
	}
	text := unsafe.Slice((*byte)(unsafe.Pointer(&names[3])), info.count*nameSize)
	counters := make([]plan.DeviceCounter, info.count)
	for i := range counters {
		counters[i] = plan.DeviceCounter{Name: unix.ByteSliceToString(text[i*nameSize : (i+1)*nameSize]), Value: values[1+i]}
	}
	return counters, nil
}
