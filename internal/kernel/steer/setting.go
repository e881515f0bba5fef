package steer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/plan"
)

// Value reads what a setting is now, in the form that its kind has. It returns ErrGone.
func (d *Device) Value(s plan.Setting) (value string, err error) {
	var cpus plan.CPUs
	switch s.Kind {
	case plan.SettingRPS:
		if value, err = d.read(queueFile(s.Number, "rps_cpus")); err == nil {
			cpus, err = plan.ParseCPUMask(value)
			value = cpus.String()
		}
	case plan.SettingRFS:
		value, err = d.read(queueFile(s.Number, "rps_flow_cnt"))
	case plan.SettingIRQ:
		cpus, err = affinity(s.Number, "smp_affinity_list")
		value = cpus.String()
	case plan.SettingRSS:
		value, err = d.readTable()
	case plan.SettingRule:
		var slot *uint32
		if slot, err = d.slotOf(*s.Rule); slot != nil {
			value = plan.RuleThere
		}
	default:
		err = fmt.Errorf("setting %q is not known", s.Kind)
	}
	return value, d.about("read", s, err)
}

// Apply makes a setting what a value says. What is so already is not written. It returns
// ErrGone and ErrRefused, and then nothing has changed.
func (d *Device) Apply(s plan.Setting, value string) error {
	is, err := d.Value(s)
	if err != nil || is == value {
		return err
	}
	var cpus plan.CPUs
	switch s.Kind {
	case plan.SettingRPS:
		if cpus, err = plan.ParseCPUs(value); err == nil {
			err = write(d.path(queueFile(s.Number, "rps_cpus")), cpus.Mask())
		}
	case plan.SettingRFS:
		err = write(d.path(queueFile(s.Number, "rps_flow_cnt")), value)
	case plan.SettingIRQ:
		err = write(irqFile(s.Number, "smp_affinity_list"), value)
	case plan.SettingRSS:
		err = d.writeTable(value)
	case plan.SettingRule:
		if value == "" {
			err = d.deleteRule(*s.Rule)
		} else {
			err = d.insertRule(*s.Rule)
		}
	}
	return d.about("set", s, err)
}

func (d *Device) readTable() (string, error) {
	table, err := d.rssTable()
	if err != nil {
		return "", err
	}
	queues := 0
	for ; ; queues++ {
		if _, err := os.Stat(d.path(queueFile(queues, "rps_cpus"))); err != nil {
			break
		}
	}
	return plan.RSSTable(table, queues), nil
}

// write writes to a file that is there.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

// about names what an error is about, and makes the kernel's numbers ours.
func (d *Device) about(verb string, s plan.Setting, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV):
		err = ErrGone
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EIO), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EPERM):
		// EIO and EPERM: the kernel itself has placed the interrupt, for a driver that asked for that.
		err = fmt.Errorf("%w (%s)", ErrRefused, errnoOf(err))
	}
	return fmt.Errorf("%s %s of %s: %w", verb, s.Object(), d.Name, err)
}

// errnoOf is the kernel's own text.
func errnoOf(err error) string {
	var number unix.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return strconv.Quote(strings.TrimSpace(err.Error()))
}
