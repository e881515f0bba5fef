package hosts

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Line is the queue of an ordinary line: one FIFO that is emptied at a rate.
type Line struct {
	Rate  uint64 // bit/s, counted with Ethernet headers
	Queue uint32 // bytes that may wait
}

// burst is what the line may send at once: a millisecond's worth, so that a
// timer that comes late does not cost throughput, at least two packets.
func (l Line) burst() uint32 { return max(uint32(l.Rate/8/1000), 2*1514) }

// String describes the line for a reader.
func (l Line) String() string {
	return fmt.Sprintf("tbf %g Mbit/s with one fifo of %d KiB", float64(l.Rate)/1e6, l.Queue/1024)
}

const lineHandle = 0x11e0 << 16

// SetLine makes the line the root queue of a device.
func (p Plug) SetLine(l Line) error {
	link, err := p.link()
	if err != nil {
		return err
	}
	tbf := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: lineHandle},
		Rate:       l.Rate / 8, // this library takes TBF's rate in byte/s
		Limit:      l.Queue,
		Buffer:     netlink.Xmittime(l.Rate/8, l.burst()),
	}
	err = p.Host.handle.QdiscReplace(tbf)
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("put line on %s: this kernel lacks the tbf qdisc", p)
	} else if err != nil {
		return fmt.Errorf("put line on %s: %w", p, err)
	}
	return nil
}

// ClearLine takes the line away; a device without one is left as it is.
func (p Plug) ClearLine() error {
	link, err := p.link()
	if err != nil {
		return err
	}
	qdiscs, err := p.Host.handle.QdiscList(link)
	if err != nil {
		return fmt.Errorf("read queues of %s: %w", p, err)
	}
	for _, q := range qdiscs {
		if q.Attrs().Handle == lineHandle {
			if err := p.Host.handle.QdiscDel(q); err != nil {
				return fmt.Errorf("take line off %s: %w", p, err)
			}
		}
	}
	return nil
}
