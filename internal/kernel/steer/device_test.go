package steer

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestRPS sets what a device has without any hardware, and finds it in the kernel.
func TestRPS(t *testing.T) {
	testutil.Needs(t, "root")
	ns := testutil.Netns(t)
	link, _ := testutil.Veth(t, ns, testutil.NewNamespace(t), testutil.VethOptions{})
	err := On(link.Name, func(d *Device) error {
		s, err := d.Read()
		if err != nil {
			return err
		}
		if s.Driver != "veth" || len(s.Queues) == 0 || s.Loopback || s.TakesRules || s.Table != "" || s.Below != nil {
			t.Errorf("read %+v", s)
		}
		cpu := slices.Max(online(t))
		for _, x := range []struct {
			setting     plan.Setting
			value, file string
			want        string
		}{
			{plan.Setting{Kind: plan.SettingRPS}, strconv.Itoa(cpu), "rps_cpus", plan.CPUs{cpu}.Mask()},
			{plan.Setting{Kind: plan.SettingRFS}, "64", "rps_flow_cnt", "64"},
			{plan.Setting{Kind: plan.SettingRFS}, "0", "rps_flow_cnt", "0"},
			{plan.Setting{Kind: plan.SettingRPS}, "", "rps_cpus", "0"},
		} {
			for range 2 { // twice is once
				if err := d.Apply(x.setting, x.value); err != nil {
					return err
				}
			}
			if got, err := d.Value(x.setting); err != nil || got != x.value {
				t.Errorf("%s: %q, %v, want %q", x.setting.Object(), got, err, x.value)
			}
			text, err := d.read(queueFile(0, x.file))
			if err != nil || strings.TrimLeft(text, "0,") != strings.TrimLeft(x.want, "0") {
				t.Errorf("%s: the kernel has %q, want %q", x.setting.Object(), text, x.want)
			}
		}
		for _, gone := range []plan.Setting{{Kind: plan.SettingRPS, Number: 99}, {Kind: plan.SettingIRQ, Number: 1 << 20}} {
			if _, err := d.Value(gone); !errors.Is(err, ErrGone) {
				t.Errorf("%s: %v", gone.Object(), err)
			}
		}
		if err := d.Apply(plan.Setting{Kind: plan.SettingRSS}, "0"); !errors.Is(err, ErrRefused) {
			t.Errorf("RSS table: %v", err)
		}
		if err := d.Apply(plan.Setting{Kind: plan.SettingRule, Rule: &plan.FlowRule{}}, plan.RuleThere); !errors.Is(err, ErrRefused) {
			t.Errorf("rule: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/sys/class/net/" + link.Name); err == nil && link.Name != "eth0" {
		t.Error("sysfs of the host knows the device")
	}
	for _, name := range []string{"none", "", ".", "..", "../" + link.Name} {
		if err := On(name, func(*Device) error { return nil }); !errors.Is(err, ErrNoDevice) {
			t.Errorf("device %q: %v", name, err)
		}
	}
	if err := On("lo", func(d *Device) error {
		s, err := d.Read()
		if !s.Loopback {
			t.Errorf("lo: %+v", s)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	if names, err := Names(); err != nil || !slices.Contains(names, link.Name) || slices.Contains(names, "lo") {
		t.Errorf("devices %v, %v", names, err)
	}
}

func online(t *testing.T) plan.CPUs {
	t.Helper()
	cpus, err := cpuList("online")
	if err != nil {
		t.Fatal(err)
	}
	return cpus
}

func TestCheckCPU(t *testing.T) {
	if err := CheckCPU(online(t)[0]); err != nil {
		t.Error(err)
	}
	var unusable *UnusableCPU
	if err := CheckCPU(100000); !errors.As(err, &unusable) || err.Error() != "CPU 100000: there is no such CPU" {
		t.Error(err)
	}
}
