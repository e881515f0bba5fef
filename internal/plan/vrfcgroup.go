package plan

import "strings"

// vrfDirectory is the cgroup below which iproute2, and Weir, have one for each VRF.
const vrfDirectory = "vrf"

// VRFCgroup is the cgroup in which new sockets of a process are bound to a VRF, by the cgroup
// that the process is in: OWN/vrf/NAME, or OWN/NETNS/vrf/NAME in a network namespace that
// has a name, as ip vrf exec has it. From inside of one it leads to another one beside it.
// Without a name it is the process's own, outside of any VRF.
func VRFCgroup(own, netns, name string) string {
	base, _ := splitVRFCgroup(own)
	base = strings.TrimSuffix(base, "/")
	if name == "" {
		if base == "" {
			return "/"
		}
		return base
	}
	if netns != "" && !strings.HasSuffix(base, "/"+netns) {
		base += "/" + netns
	}
	return base + "/" + vrfDirectory + "/" + name
}

// VRFOfCgroup is the name of the VRF that a cgroup's path tells, "" if it tells none. It
// reads what ip vrf exec makes and what [VRFCgroup] returns, and cgroups below these.
func VRFOfCgroup(path string) string {
	_, name := splitVRFCgroup(path)
	return name
}

func splitVRFCgroup(path string) (base, name string) {
	const mark = "/" + vrfDirectory + "/"
	i := strings.Index(path+"/", mark)
	if i < 0 {
		return path, ""
	}
	rest := strings.TrimPrefix((path + "/")[i:], mark)
	name, _, _ = strings.Cut(rest, "/")
	if i == 0 {
		return "/", name
	}
	return path[:i], name
}
