package lab

import (
	"fmt"
	"io/fs"
	"strings"
)

// processor returns the model of the CPUs, as "AMD EPYC, family 25, model 17" (a virtual machine's name alone often tells no
// generation), and what the kernel does against Spectre v2. Each is "" where the kernel does not say.
func processor(root fs.FS) (model, mitigation string) {
	text, _ := fs.ReadFile(root, "proc/cpuinfo") // what is not there is not said
	first, _, _ := strings.Cut(string(text), "\n\n")
	fields := map[string]string{}
	for line := range strings.Lines(first) {
		name, value, _ := strings.Cut(line, ":")
		fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if model = fields["model name"]; model != "" && fields["cpu family"] != "" {
		model += fmt.Sprintf(", family %s, model %s", fields["cpu family"], fields["model"])
	}
	text, _ = fs.ReadFile(root, "sys/devices/system/cpu/vulnerabilities/spectre_v2")
	return model, strings.TrimSpace(string(text))
}
