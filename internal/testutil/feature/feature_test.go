package feature

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestUnknownName(t *testing.T) {
	if _, err := Has("luck"); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

// TestEveryProbeAnswers: as root none may shrug, or a skip could not be policed.
func TestEveryProbeAnswers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("needs %s", "root")
	}
	for _, name := range Names() {
		if _, err := Has(name); err != nil {
			t.Error(err)
		}
	}
}

// TestProbesAgreeWithTheTools holds the probes to what iproute2 meets on the
// same kernel. These kinds are accepted without an option.
func TestProbesAgreeWithTheTools(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("needs %s", "root")
	}
	for _, name := range []string{"ip", "tc"} {
		if ok, _ := Has(name); !ok {
			t.Skipf("needs %s", name)
		}
	}
	for name, command := range map[string]string{
		"htb qdisc":      "tc qdisc add dev lo root htb",
		"prio qdisc":     "tc qdisc add dev lo root prio",
		"fq qdisc":       "tc qdisc add dev lo root fq",
		"fq_codel qdisc": "tc qdisc add dev lo root fq_codel",
		"sfq qdisc":      "tc qdisc add dev lo root sfq",
		"ets qdisc":      "tc qdisc add dev lo root ets strict 4",
		"tbf qdisc":      "tc qdisc add dev lo root tbf rate 1mbit burst 2k limit 10k",
		"netem qdisc":    "tc qdisc add dev lo root netem delay 1ms",
		"clsact qdisc":   "tc qdisc add dev lo clsact",
		"dummy link":     "ip link add d0 type dummy",
		"ifb link":       "ip link add i0 type ifb",
		"veth link":      "ip link add v0 type veth peer name v1",
		"vrf link":       "ip link add r0 type vrf table 10",
		"bridge link":    "ip link add b0 type bridge",
		"police action":  "tc actions add action police rate 1mbit burst 10k",
		"skbedit action": "tc actions add action skbedit priority 1",
	} {
		t.Run(name, func(t *testing.T) {
			f := strings.Fields(command)
			var out []byte
			toolErr := inNetns(func() (err error) {
				out, err = exec.Command(f[0], f[1:]...).CombinedOutput()
				return err
			})
			if got, err := Has(name); err != nil || got != (toolErr == nil) {
				t.Errorf("the probe says %v (%v), but %s says %v: %s", got, err, command, toolErr, out)
			}
		})
	}
}
