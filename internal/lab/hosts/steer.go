package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/kernel/steer"
	"github.com/weir-net/weir/internal/plan"
)

// Steer has one CPU handle what arrives at the device, as a card does with one queue whose
// interrupt is bound to it: RPS hands packets over to it in batches.
func (p Plug) Steer(cpu int) error {
	err := p.Host.do(func() error {
		return steer.InSysfs(func(root string) error {
			queues, err := filepath.Glob(filepath.Join(root, "class/net", p.Device, "queues/rx-*/rps_cpus"))
			if err == nil && len(queues) == 0 {
				err = Lacking("steering of packets to CPUs (RPS)")
			}
			for _, queue := range queues {
				err = errors.Join(err, os.WriteFile(queue, []byte(plan.CPUs{cpu}.Mask()), 0o644))
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("steer packets of %s: %w", p, err)
	}
	return nil
}
