package plan

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A ServiceWay is how a service of systemd's gets into a VRF.
type ServiceWay string

// The ways, the best first.
const (
	ByInterface ServiceWay = "BindNetworkInterface" // systemd binds the sockets itself, since 260
	ByProgram   ServiceWay = "BPFProgram"           // systemd attaches a program that is pinned before, since 249
	ByExec      ServiceWay = "exec"                 // the service is started by weir vrf exec
)

// ServiceWays are all of them.
var ServiceWays = []ServiceWay{ByInterface, ByProgram, ByExec}

// Places of what services need.
const (
	ServicePins     = "/sys/fs/bpf/weir-vrf"
	PinUnit         = "weir-vrf@.service"
	DropInName      = "50-weir-vrf.conf"
	resolvedPlace   = "/run/systemd/resolve"
	dropInMark      = "# Made by weir vrf service, which removes it with --undo."
	dropInOf        = "# VRF "
	systemdTrueText = "yes true on 1 full strict private"
)

// A UnitText is what the files of a unit say: section and key, to values, after all files of it.
type UnitText map[string][]string

// ParseUnit reads the files of a unit in the order in which systemd does. An empty value
// takes back those before it. Lines that are none of systemd's are passed over, as systemd does.
func ParseUnit(files ...string) UnitText {
	u := UnitText{}
	for _, text := range files {
		section, held := "", ""
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && (line[0] == '#' || line[0] == ';') {
				continue
			}
			if rest, ok := strings.CutSuffix(line, `\`); ok {
				held += rest + " "
				continue
			}
			line, held = held+line, ""
			if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
				section = line[1 : len(line)-1]
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			if !ok {
				continue
			}
			key, value = section+"."+strings.TrimSpace(key), strings.TrimSpace(value)
			if value == "" {
				u[key] = nil
				continue
			}
			u[key] = append(u[key], value)
		}
	}
	return u
}

// last is the value that holds of a key that has one.
func (u UnitText) last(key string) string {
	if values := u[key]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

func (u UnitText) truth(key string) bool {
	return slices.Contains(strings.Fields(systemdTrueText), strings.ToLower(u.last(key)))
}

// mayHold reports whether a service's bounding set leaves a capability. The first line says whether
// it names what is left or, with a ~, what is taken.
func (u UnitText) mayHold(capability string) bool {
	may := true
	for i, value := range u["Service.CapabilityBoundingSet"] {
		names, taken := strings.CutPrefix(value, "~")
		switch named := slices.Contains(strings.Fields(names), capability); {
		case taken:
			may = may && !named
		case i == 0:
			may = named
		default:
			may = may || named
		}
	}
	return may
}

// ServiceOf is the unit whose sockets are meant by one that makes none: a timer's service.
func (u UnitText) ServiceOf(unit string) string {
	base, ok := strings.CutSuffix(unit, ".timer")
	if !ok {
		return unit
	}
	if other := u.last("Timer.Unit"); other != "" {
		return other
	}
	return base + ".service"
}

// Listens reports whether a socket unit has addresses of IP, which its service inherits.
func (u UnitText) Listens() bool {
	for _, key := range []string{"Socket.ListenStream", "Socket.ListenDatagram"} {
		for _, a := range u[key] {
			if !strings.HasPrefix(a, "/") && !strings.HasPrefix(a, "@") && !strings.HasPrefix(a, "vsock:") {
				return true
			}
		}
	}
	return false
}

// A VRFService is what is to be written for a unit.
type VRFService struct {
	Unit       string
	Text       UnitText
	VRF        string
	Way        ServiceWay
	Weir       string // path of the program
	Resolver   string // resolv.conf of the VRF; "" for that of the host
	ResolvConf string // where /etc/resolv.conf leads to
}

// Files are the files to write, by their paths: a drop-in, and what that depends on. An error says why this
// way does not lead there.
func (s VRFService) Files() (map[string]string, error) {
	lines, err := s.lines()
	if err != nil {
		return nil, err
	}
	dropIn := path.Join("/etc/systemd/system", s.Unit+".d", DropInName)
	files := map[string]string{dropIn: dropInMark + "\n" + dropInOf + s.VRF + "\n" + strings.Join(lines, "\n") + "\n"}
	if s.Way == ByProgram && !strings.HasSuffix(s.Unit, ".socket") {
		files[path.Join("/etc/systemd/system", PinUnit)] = s.pinUnit()
	}
	return files, nil
}

// MadeDropIn reports whether a text is one of [VRFService.Files].
func MadeDropIn(text string) bool { return strings.HasPrefix(text, dropInMark) }

// DropInVRF is the VRF that a drop-in of [VRFService.Files] is for, "" of what is none.
func DropInVRF(text string) string {
	rest, ours := strings.CutPrefix(text, dropInMark+"\n"+dropInOf)
	if !ours {
		return ""
	}
	vrf, _, _ := strings.Cut(rest, "\n")
	return vrf
}

// VRFServices tells of the units that have such a drop-in, each with its VRF, by the VRFs that
// there are.
func VRFServices(known []string, installed map[string]string) (findings []Finding) {
	for _, unit := range slices.Sorted(maps.Keys(installed)) {
		vrf := installed[unit]
		f := Finding{ID: "service/" + unit, State: FindingOK, Text: fmt.Sprintf("%s is bound to %s by weir vrf service", unit, vrf)}
		if !slices.Contains(known, vrf) {
			f.State, f.Text = FindingFail, fmt.Sprintf("%s is bound to VRF %s by weir vrf service, and there is none here", unit, vrf)
			f.Stops, f.Mend = unit+", which does not start without", "weir vrf service "+unit+" --undo"
		}
		findings = append(findings, f)
	}
	return findings
}

func (s VRFService) lines() ([]string, error) {
	if strings.HasSuffix(s.Unit, ".socket") { // systemd makes these itself
		return []string{"[Socket]", "BindToDevice=" + s.VRF}, nil
	}
	if !strings.HasSuffix(s.Unit, ".service") {
		return nil, fmt.Errorf("%s: only services, sockets and timers have to do with sockets", s.Unit)
	}
	switch s.Way {
	case ByInterface:
		return append([]string{"[Service]", "BindNetworkInterface=" + s.VRF}, s.lookups()...), nil
	case ByProgram:
		if strings.Contains(s.VRF, ".") {
			return nil, fmt.Errorf("VRF %s: the BPF file system takes no name with a dot in it", s.VRF)
		}
		pin := PinInstance(s.VRF)
		return append([]string{
			"[Unit]", "Requires=" + pin, "After=" + pin, "",
			"[Service]", "BPFProgram=sock_create:" + path.Join(ServicePins, s.VRF),
		}, s.lookups()...), nil
	}
	return s.wrapped()
}

// lookups give the service the VRF's resolv.conf, and hide what would look names up elsewhere, as
// weir vrf exec does.
func (s VRFService) lookups() []string {
	switch {
	case s.Resolver == "":
		return nil
	case path.Dir(s.ResolvConf) == resolvedPlace:
		// Not the file alone: resolved replaces it, and a mount on it would go.
		return []string{
			"TemporaryFileSystem=" + resolvedPlace,
			"BindReadOnlyPaths=" + s.Resolver + ":" + resolvedPlace + "/stub-resolv.conf " + s.Resolver + ":" + resolvedPlace + "/resolv.conf",
			"InaccessiblePaths=-/run/nscd",
		}
	}
	return []string{"BindReadOnlyPaths=" + s.Resolver + ":/etc/resolv.conf", "InaccessiblePaths=-" + resolvedPlace + " -/run/nscd"}
}

// wrapped starts the service by weir vrf exec. That has to enter a cgroup below the unit's and to
// load a program, which some units may not.
func (s VRFService) wrapped() ([]string, error) {
	commands := s.Text["Service.ExecStart"]
	if len(commands) == 0 {
		return nil, fmt.Errorf("%s has no ExecStart=", s.Unit)
	}
	if user := s.Text.last("Service.User"); user != "" && user != "root" && user != "0" || s.Text.truth("Service.DynamicUser") {
		return nil, fmt.Errorf("%s does not run as root (User=), and exec needs that", s.Unit)
	}
	for _, capability := range []string{"CAP_NET_ADMIN", "CAP_BPF"} {
		if !s.Text.mayHold(capability) {
			return nil, fmt.Errorf("%s has no %s (CapabilityBoundingSet=), and exec needs that", s.Unit, capability)
		}
	}
	for _, key := range []string{"ProtectControlGroups", "PrivateUsers"} {
		if s.Text.truth("Service." + key) {
			return nil, fmt.Errorf("%s has %s=, so that exec could not make a cgroup", s.Unit, key)
		}
	}
	lines := []string{"[Service]", "ExecStart="}
	for _, command := range commands {
		rest := strings.TrimLeft(command, "-:+!|@")
		prefix := command[:len(command)-len(rest)]
		if strings.Contains(prefix, "@") {
			return nil, fmt.Errorf("%s: %w: %s", s.Unit, errOwnName, command)
		}
		lines = append(lines, fmt.Sprintf("ExecStart=%s%s vrf exec %s -- %s", prefix, s.Weir, s.VRF, rest))
	}
	return lines, nil
}

var errOwnName = errors.New("exec can not give a command another name (ExecStart=@)")

func (s VRFService) pinUnit() string {
	return dropInMark + `
[Unit]
Description=Program that binds the sockets of services to VRF %I
BindsTo=sys-subsystem-net-devices-%i.device
After=sys-subsystem-net-devices-%i.device

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + s.Weir + ` vrf pin %I
ExecStop=` + s.Weir + ` vrf pin --remove %I
`
}

// PinInstance is the unit that pins the program of a VRF.
func PinInstance(vrf string) string { return strings.Replace(PinUnit, "@", "@"+EscapeUnit(vrf), 1) }

// EscapeUnit is a name as an instance of a unit has it (systemd-escape).
func EscapeUnit(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == ':', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
