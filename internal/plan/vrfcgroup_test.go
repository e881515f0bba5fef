package plan

import "testing"

func TestVRFCgroup(t *testing.T) {
	for _, tt := range []struct{ own, netns, name, want string }{
		{"/", "", "mgmt", "/vrf/mgmt"},
		{"/user.slice/session-2.scope", "", "mgmt", "/user.slice/session-2.scope/vrf/mgmt"},
		{"/user.slice/session-2.scope", "blue", "mgmt", "/user.slice/session-2.scope/blue/vrf/mgmt"},
		{"/a/blue/vrf/mgmt", "blue", "data", "/a/blue/vrf/data"},
		{"/a/vrf/mgmt", "", "data", "/a/vrf/data"},
		{"/a/vrf/mgmt/below", "", "data", "/a/vrf/data"},
		{"/a/vrf/mgmt", "", "", "/a"},
		{"/vrf/mgmt", "", "", "/"},
		{"/", "", "", "/"},
		{"/vrfs/x", "", "mgmt", "/vrfs/x/vrf/mgmt"},
	} {
		got := VRFCgroup(tt.own, tt.netns, tt.name)
		if got != tt.want {
			t.Errorf("VRFCgroup(%q, %q, %q) = %q, want %q", tt.own, tt.netns, tt.name, got, tt.want)
		}
		if name := VRFOfCgroup(got); name != tt.name {
			t.Errorf("VRFOfCgroup(%q) = %q, want %q", got, name, tt.name)
		}
	}
	for path, want := range map[string]string{"/a/vrf/mgmt/below": "mgmt", "/a/vrf": "", "/vrfs/x": "", "": ""} {
		if name := VRFOfCgroup(path); name != want {
			t.Errorf("VRFOfCgroup(%q) = %q, want %q", path, name, want)
		}
	}
}
