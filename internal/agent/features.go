package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/kernel/tc"
	"github.com/weir-net/weir/internal/plan"
)

// probed is what the probes found, and on which kernel.
type probed struct {
	Boot     string        `json:"boot"`
	Modules  []byte        `json:"modules"` // a digest of which are loaded
	Version  string        `json:"version"`
	Features plan.Features `json:"features"`
}

// features probes the kernel, once per boot and set of modules: the probes would
// be most of the time of an apply. What a probe could not find out is asked again.
func (a *Agent) features(ctx context.Context) plan.Features {
	file := filepath.Join(a.Scope.Run, "features.json")
	var have probed
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &have) == nil && have.current(a.Version) {
		return have.Features
	}
	features := probe(ctx)
	if len(features.Unknown) > 0 {
		return features
	}
	// The modules afterwards: a probe loads those that it needs.
	b, err := json.Marshal(probed{bootID(), loadedModules(), a.Version, features})
	if err == nil {
		_ = os.WriteFile(file, b, 0o600) // only spares the next probe
	}
	return features
}

func (p probed) current(version string) bool {
	return p.Version == version && p.Boot == bootID() && bytes.Equal(p.Modules, loadedModules())
}

// bootID names this boot; "" where the kernel does not tell.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(text))
}

// loadedModules is a digest of the names of the kernel's modules: one that was
// loaded, or installed and then found by weir doctor, makes another kernel.
func loadedModules() []byte {
	text, _ := os.ReadFile("/proc/modules") // none: a kernel without modules
	sum := sha256.New()
	for line := range bytes.Lines(text) {
		name, _, _ := bytes.Cut(line, []byte(" "))
		_, _ = sum.Write(append(name, '\n'))
	}
	return sum.Sum(nil)
}

// probe asks the kernel what it can do, now.
func probe(ctx context.Context) plan.Features {
	features := host.Probe(ctx)
	has, unknown := tc.Probe()
	features.Qdiscs, features.Police, features.Weighs = has, has[tc.Policing], has[tc.Weighing]
	for kind, why := range unknown {
		features.Unknown[plan.FeatureQdisc(kind)] = why
	}
	if why, ok := unknown[tc.Policing]; ok {
		features.Unknown[plan.FeaturePolice] = why
	}
	if why, ok := unknown[tc.Weighing]; ok {
		features.Unknown[plan.FeatureWeighs] = why
	}
	return features
}

// probeIfb asks the kernel whether it can queue what arrives. That may bring devices to the
// host that nobody asked for, so it is no part of probe.
func probeIfb(f *plan.Features) {
	has, err := tc.ProbeDetour()
	if f.Ifb = has; err != nil {
		f.Unknown[plan.FeatureIfb] = err.Error()
	}
}
