package steer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

var (
	// ErrNoDevice says that there is no device of that name.
	ErrNoDevice = errors.New("no such device")

	// ErrGone says that there is no such queue, interrupt or table any more.
	ErrGone = errors.New("not there any more")

	// ErrRefused says that the kernel or the driver does not take a setting.
	ErrRefused = errors.New("the driver does not take that")
)

// A Device is a network device of the namespace that it was opened in.
type Device struct {
	Name  string
	Index int
	root  string // of sysfs
	fd    int    // of a socket for ethtool's requests
}

// On calls fn with a device of the calling thread's network namespace. It returns
// ErrNoDevice.
func On(name string, fn func(*Device) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	return InSysfs(func(root string) error {
		d := &Device{Name: name, root: root, fd: fd}
		if err := d.find(); err != nil {
			return err
		}
		return fn(d)
	})
}

// Names are the devices of the calling thread's network namespace, but for loopbacks.
func Names() (names []string, err error) {
	err = InSysfs(func(root string) error {
		dirs, err := filepath.Glob(filepath.Join(root, "class/net/*/ifindex"))
		for _, dir := range dirs {
			d := Device{Name: filepath.Base(filepath.Dir(dir)), root: root}
			if !d.loopback() {
				names = append(names, d.Name)
			}
		}
		return err
	})
	return names, err
}

// NameOf is the name that the device of a number has in the calling thread's network
// namespace, "" if there is none.
func NameOf(index int) (name string, err error) {
	device, err := netlink.LinkByIndex(index)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("find device %d: %w", index, err)
	}
	return device.Attrs().Name, nil
}

func (d *Device) find() error {
	if d.Name != filepath.Base(d.Name) || strings.HasPrefix(d.Name, ".") { // or it would lead elsewhere
		return ErrNoDevice
	}
	text, err := d.read("ifindex")
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoDevice
	}
	if err == nil {
		d.Index, err = strconv.Atoi(text)
	}
	return err
}

func (d *Device) path(file string) string { return filepath.Join(d.root, "class/net", d.Name, file) }

// read reads a file of the device in sysfs.
func (d *Device) read(file string) (string, error) {
	text, err := os.ReadFile(d.path(file))
	return strings.TrimSpace(string(text)), err
}

// loopback goes by the type of the hardware, ARPHRD_LOOPBACK.
func (d *Device) loopback() bool {
	kind, err := d.read("type")
	return err == nil && kind == strconv.Itoa(unix.ARPHRD_LOOPBACK)
}

// Read says how the device's packets come to CPUs.
func (d *Device) Read() (plan.Spread, error) {
	s := plan.Spread{Driver: d.driver(), Loopback: d.loopback()}
	below, _ := filepath.Glob(d.path("lower_*"))
	for _, path := range below {
		s.Below = append(s.Below, strings.TrimPrefix(filepath.Base(path), "lower_"))
	}
	threaded, _ := d.read("threaded")
	s.Threaded = threaded == "1"
	interrupts, err := d.interrupts()
	if err != nil {
		return s, err
	}
	for i := 0; ; i++ {
		q, err := d.queue(i)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return s, err
		}
		q.Interrupt = interrupts[i]
		s.Queues = append(s.Queues, q)
	}
	if table, err := d.rssTable(); err == nil {
		s.Table = plan.RSSTable(table, len(s.Queues))
	}
	s.Rules, s.TakesRules = d.rules()
	return s, nil
}

func (d *Device) queue(i int) (q plan.RxQueue, err error) {
	mask, err := d.read(queueFile(i, "rps_cpus"))
	if err != nil {
		return q, err
	}
	if q.RPS, err = plan.ParseCPUMask(mask); err != nil {
		return q, err
	}
	flows, err := d.read(queueFile(i, "rps_flow_cnt"))
	if err == nil {
		q.Flows, err = strconv.Atoi(flows)
	}
	return q, err
}

func queueFile(i int, file string) string { return fmt.Sprintf("queues/rx-%d/%s", i, file) }

// interrupts finds those of the device's RX queues.
func (d *Device) interrupts() (map[int]*plan.Interrupt, error) {
	text, err := os.ReadFile("/proc/interrupts")
	if err != nil {
		return nil, fmt.Errorf("read interrupts: %w", err)
	}
	found := map[int]*plan.Interrupt{}
	port, ok := d.port()
	if !ok { // nothing but software
		return found, nil
	}
	for q, line := range plan.QueueInterrupts(plan.ParseInterrupts(string(text)).Lines, port) {
		i := &plan.Interrupt{Number: line.Number, Name: strings.Join(line.Names, ", ")}
		if i.May, err = affinity(line.Number, "smp_affinity_list"); err != nil {
			continue // freed meanwhile
		}
		if i.At, err = affinity(line.Number, "effective_affinity_list"); err != nil || len(i.At) == 0 {
			i.At = i.May // this machine does not tell
		}
		found[q] = i
	}
	return found, nil
}

// port says by what the device's interrupts are known; not ok: it has no hardware.
func (d *Device) port() (p plan.Port, ok bool) {
	hardware, err := os.Readlink(d.path("device"))
	if err != nil {
		return p, false
	}
	p.Link, p.Bus, p.Numbers = d.Name, filepath.Base(hardware), map[int]bool{}
	// Of a virtio device the one above has them. The kernel has to find that one itself:
	// /device is a link.
	for _, dir := range []string{"/device/msi_irqs", "/device/../msi_irqs"} {
		own, _ := os.ReadDir(d.path("") + dir)
		for _, irq := range own {
			if n, err := strconv.Atoi(irq.Name()); err == nil {
				p.Numbers[n] = true
			}
		}
		if len(p.Numbers) > 0 {
			break
		}
	}
	return p, true
}

func affinity(irq int, file string) (plan.CPUs, error) {
	text, err := os.ReadFile(irqFile(irq, file))
	if err != nil {
		return nil, err
	}
	return plan.ParseCPUs(string(text))
}

func irqFile(irq int, file string) string {
	return filepath.Join("/proc/irq", strconv.Itoa(irq), file)
}

// CheckCPU says why a CPU can not handle packets.
func CheckCPU(cpu int) error {
	online, err := cpuList("online")
	if err != nil {
		return err
	}
	if slices.Contains(online, cpu) {
		return nil
	}
	why := "there is no such CPU"
	if present, err := cpuList("present"); err == nil && slices.Contains(present, cpu) {
		why = "it is offline"
	}
	return &UnusableCPU{CPU: cpu, Why: why, Online: online}
}

// UnusableCPU is an error: a CPU that handles nothing.
type UnusableCPU struct {
	CPU    int
	Why    string
	Online plan.CPUs
}

// Error names the CPU and says why it handles nothing.
func (e *UnusableCPU) Error() string { return fmt.Sprintf("CPU %d: %s", e.CPU, e.Why) }

func cpuList(file string) (plan.CPUs, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/" + file)
	if err != nil {
		return nil, fmt.Errorf("read CPUs: %w", err)
	}
	return plan.ParseCPUs(string(text))
}
