package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/weir-net/weir/internal/plan"
)

// Probe finds out by trying what the kernel offers, but for BTF and SockCgroup,
// for which it reads. What a try shows to be absent is false; what could not be
// tried is false too and has its reason in Unknown. Everything is tried in
// namespaces, hierarchies and cgroups that are gone afterwards; the tracepoints
// alone see an empty program for a moment. Qdiscs stays nil: kernel/tc knows the
// kinds.
func Probe(ctx context.Context) plan.Features {
	// Kernels before 5.11 count maps as locked memory. Where raising the limit
	// is refused, the probes say what that costs.
	_ = rlimit.RemoveMemlock()

	f := plan.Features{Unknown: map[string]string{}}
	for _, p := range probes(&f) {
		err := ctx.Err()
		if err == nil {
			err = p.try()
		}
		switch {
		case err == nil:
			*p.found = true
		case !errors.Is(err, ebpf.ErrNotSupported):
			f.Unknown[p.feature] = err.Error()
		}
	}
	return f
}

// A probe tries one feature. An error that is not [ebpf.ErrNotSupported] means
// that the try showed nothing.
type probe struct {
	feature string
	found   *bool
	try     func() error
}

func probes(f *plan.Features) []probe {
	return []probe{
		{plan.FeatureTCX, &f.TCX, inside(tcx)},
		{plan.FeatureClsBPF, &f.ClsBPF, inside(clsBPF)},
		{plan.FeatureSKStorage, &f.SKStorage, skStorage},
		{plan.FeatureSockCreate, &f.SockCreate, sockCreate},
		{plan.FeatureRawTracepoint, &f.RawTracepoint, rawTracepoints},
		{plan.FeaturePidfdGetfd, &f.PidfdGetfd, pidfdGetfd},
		{plan.FeatureBTF, &f.BTF, vmlinuxBTF},
		{plan.FeatureNetPrio, &f.NetPrio, netPrio},
		{plan.FeatureSockCgroup, &f.SockCgroup, sockCgroup},
		{plan.FeatureAtomics, &f.Atomics, atomics},
		{plan.FeatureTailCalls, &f.TailCalls, tailCalls},
		{plan.FeatureSockOps, &f.SockOps, sockOps},
	}
}

func inside(try func() error) func() error {
	return func() error { return inNewNetns(try) }
}

// absentOn marks err as [ebpf.ErrNotSupported] if it is one of the errors by
// which the kernel says that it has no such thing.
func absentOn(err error, absent ...error) error {
	for _, a := range absent {
		if errors.Is(err, a) {
			return fmt.Errorf("%w: %w", ebpf.ErrNotSupported, err)
		}
	}
	return err
}

// narrowed takes the word of a narrower test over err, unless that test finds
// what it looks for. The library guesses at reasons: without privileges it
// calls socket storage not supported.
func narrowed(err, narrower error) error {
	if narrower != nil {
		return narrower
	}
	return err
}
