package plan

import (
	"strings"
	"testing"
)

const dockerUnit = `[Unit]
Description=Docker
[Service]
Type=notify
# a comment
ExecStart=/usr/bin/dockerd -H fd:// \
    --containerd=/run/containerd/containerd.sock
Delegate=yes
`

func TestVRFService(t *testing.T) {
	service := func(way ServiceWay, unit string, files ...string) VRFService {
		return VRFService{Unit: unit, Text: ParseUnit(files...), VRF: "mgmt", Way: way, Weir: "/usr/bin/weir", ResolvConf: "/etc/resolv.conf"}
	}
	own := func(s VRFService, target string) VRFService {
		s.Resolver, s.ResolvConf = "/etc/weir/vrf/mgmt/resolv.conf", target
		return s
	}
	dashed := service(ByProgram, "docker.service", dockerUnit)
	dashed.VRF = "vrf-blue"
	dotted := service(ByProgram, "docker.service", dockerUnit)
	dotted.VRF = "a.b"
	for name, tt := range map[string]struct {
		s    VRFService
		want string
	}{
		"interface": {service(ByInterface, "docker.service", dockerUnit), "[Service]|BindNetworkInterface=mgmt"},
		"program": {dashed, `[Unit]|Requires=weir-vrf@vrf\x2dblue.service|After=weir-vrf@vrf\x2dblue.service||` +
			`[Service]|BPFProgram=sock_create:/sys/fs/bpf/weir-vrf/vrf-blue`},
		"dot":  {dotted, "error: VRF a.b: the BPF file system takes no name with a dot in it"},
		"exec": {service(ByExec, "docker.service", dockerUnit), "[Service]|ExecStart=|ExecStart=/usr/bin/weir vrf exec mgmt -- /usr/bin/dockerd -H fd://  --containerd=/run/containerd/containerd.sock"},
		"prefixes, and a drop-in that takes back": {
			service(ByExec, "ssh.service", "[Service]\nExecStart=/usr/sbin/sshd -D\n", "[Service]\nExecStart=\nExecStart=-!/usr/sbin/sshd -D $OPTS\n"),
			"[Service]|ExecStart=|ExecStart=-!/usr/bin/weir vrf exec mgmt -- /usr/sbin/sshd -D $OPTS",
		},
		"a name of its own": {service(ByExec, "a.service", "[Service]\nExecStart=@/bin/a b c\n"), "error: a.service: exec can not give a command another name (ExecStart=@): @/bin/a b c"},
		"a user":            {service(ByExec, "a.service", "[Service]\nUser=a\nExecStart=/bin/a\n"), "error: a.service does not run as root (User=), and exec needs that"},
		"no cgroups": {service(ByExec, "chrony.service", "[Service]\nProtectControlGroups=yes\nExecStart=!/usr/sbin/chronyd\n"),
			"error: chrony.service has ProtectControlGroups=, so that exec could not make a cgroup"},
		"capabilities taken": {service(ByExec, "a.service", "[Service]\nCapabilityBoundingSet=~CAP_KILL CAP_BPF\nExecStart=/a\n"),
			"error: a.service has no CAP_BPF (CapabilityBoundingSet=), and exec needs that"},
		"capabilities left": {service(ByExec, "a.service", "[Service]\nCapabilityBoundingSet=CAP_BPF\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\nExecStart=/a\n"),
			"error: a.service has no CAP_NET_ADMIN (CapabilityBoundingSet=), and exec needs that"},
		"capabilities enough": {service(ByExec, "a.service", "[Service]\nCapabilityBoundingSet=CAP_BPF\nCapabilityBoundingSet=CAP_NET_ADMIN\nCapabilityBoundingSet=~CAP_KILL\nExecStart=/a\n"),
			"[Service]|ExecStart=|ExecStart=/usr/bin/weir vrf exec mgmt -- /a"},
		"socket": {service(ByProgram, "ssh.socket", "[Socket]\nListenStream=22\n"), "[Socket]|BindToDevice=mgmt"},
		"target": {service(ByInterface, "a.target", ""), "error: a.target: only services, sockets and timers have to do with sockets"},
		"lookups by resolved": {own(service(ByInterface, "a.service", dockerUnit), "/run/systemd/resolve/stub-resolv.conf"),
			"[Service]|BindNetworkInterface=mgmt|TemporaryFileSystem=/run/systemd/resolve|" +
				"BindReadOnlyPaths=/etc/weir/vrf/mgmt/resolv.conf:/run/systemd/resolve/stub-resolv.conf /etc/weir/vrf/mgmt/resolv.conf:/run/systemd/resolve/resolv.conf|InaccessiblePaths=-/run/nscd"},
		"lookups": {own(service(ByInterface, "a.service", dockerUnit), "/etc/resolv.conf"),
			"[Service]|BindNetworkInterface=mgmt|BindReadOnlyPaths=/etc/weir/vrf/mgmt/resolv.conf:/etc/resolv.conf|InaccessiblePaths=-/run/systemd/resolve -/run/nscd"},
	} {
		files, err := tt.s.Files()
		got := strings.TrimSuffix(strings.ReplaceAll(strings.TrimPrefix(files["/etc/systemd/system/"+tt.s.Unit+".d/50-weir-vrf.conf"], dropInMark+"\n"+dropInOf+tt.s.VRF+"\n"), "\n", "|"), "|")
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
		if _, ok := files["/etc/systemd/system/weir-vrf@.service"]; ok != (name == "program") {
			t.Errorf("%s: the unit of the pin: %v", name, ok)
		}
	}
	files, _ := dashed.Files()
	if got := DropInVRF(files["/etc/systemd/system/docker.service.d/50-weir-vrf.conf"]) + DropInVRF("[Service]\n"); got != "vrf-blue" {
		t.Errorf("the drop-in is for %q", got)
	}
	if got := ParseUnit("[Timer]\nUnit=b.service\n").ServiceOf("a.timer") + ParseUnit("").ServiceOf("a.timer") + ParseUnit("").ServiceOf("a.socket"); got != "b.servicea.servicea.socket" {
		t.Error(got)
	}
	if ParseUnit("[Socket]\nListenStream=/run/docker.sock\n").Listens() || !ParseUnit("[Socket]\nListenStream=0.0.0.0:22\n").Listens() {
		t.Error("who listens")
	}
}

func TestVRFServices(t *testing.T) {
	found := VRFServices([]string{"mgmt"}, map[string]string{"ssh.service": "mgmt", "docker.service": "blue"})
	if len(found) != 2 || found[0].State != FindingFail || found[0].Mend != "weir vrf service docker.service --undo" || found[1].State != FindingOK {
		t.Errorf("%+v", found)
	}
}
