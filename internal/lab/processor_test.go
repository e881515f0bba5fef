package lab

import (
	"testing"
	"testing/fstest"
)

func TestProcessor(t *testing.T) {
	const info, spectre = "proc/cpuinfo", "sys/devices/system/cpu/vulnerabilities/spectre_v2"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		root              fstest.MapFS
		model, mitigation string
	}{
		"x86": {
			fstest.MapFS{
				info:    file("processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nflags\t\t: a: b\n\nprocessor\t: 1\nmodel\t\t: 18\n"),
				spectre: file("Mitigation: Retpolines; RSB filling\n"),
			},
			"AMD EPYC, family 25, model 17", "Mitigation: Retpolines; RSB filling",
		},
		"no model":                   {fstest.MapFS{info: file("processor\t: 0\nBogoMIPS\t: 50.00\nCPU part\t: 0xd0c\n"), spectre: file("Not affected\n")}, "", "Not affected"},
		"a model alone":              {fstest.MapFS{info: file("model name\t: ARMv7 Processor rev 4 (v7l)\n")}, "ARMv7 Processor rev 4 (v7l)", ""},
		"a kernel that says nothing": {fstest.MapFS{}, "", ""},
	} {
		if model, mitigation := processor(c.root); model != c.model || mitigation != c.mitigation {
			t.Errorf("%s: %q, %q, want %q, %q", name, model, mitigation, c.model, c.mitigation)
		}
	}
}
