package bpf

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/rlimit"

	"github.com/weir-net/weir/internal/plan"
	"github.com/weir-net/weir/internal/testutil"
)

// TestProofs holds what it takes a kernel to prove what sees packets, or paces, to half of the million
// instructions at which it refuses one: it differs between kernels, and is time that apply takes.
func TestProofs(t *testing.T) {
	testutil.Needs(t, "root", "BPF atomics", "BPF tail calls")
	_ = rlimit.RemoveMemlock() // see newGeneration
	knowsMPTCP := features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkcToMptcpSock) == nil
	const most = 500_000
	processed := regexp.MustCompile(`processed (\d+) insns`)
	for name, parse := range map[string]func() (*ebpf.CollectionSpec, error){
		linkEgressProgLinkEgress:       parseEgress,
		linkIngressProgLinkIngress:     parseIngress,
		socketIngressProgSocketIngress: parseReceive,
		limitProgLimit:                 parseLimit,
		departProgDepart:               parseDepart,
		paceProgPace:                   parsePace,
		windowProgWindow:               parseWindow,
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := copied(parse)
			if err != nil {
				t.Fatal(err)
			}
			// What a program does not need is not proved, so all of them need all.
			for variable, value := range map[string]any{
				linkEgressVarTupleCount: uint32(plan.MaxTuples),
				linkEgressVarLimits:     true,
				linkEgressVarOwnBudgets: uint32(1),
				linkEgressVarBucketMask: uint32(7),
				linkIngressVarWeights:   true,
				linkEgressVarKnowsMptcp: knowsMPTCP,
			} {
				if v := spec.Variables[variable]; v != nil {
					if err := v.Set(value); err != nil {
						t.Fatal(err)
					}
				}
			}
			c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			said := processed.FindStringSubmatch(c.Programs[name].VerifierLog)
			if said == nil {
				t.Fatalf("the kernel says nothing of its proof: %q", c.Programs[name].VerifierLog)
			}
			if n, err := strconv.Atoi(said[1]); err != nil || n > most {
				t.Errorf("the proof takes %s instructions, want %d at most", said[1], most)
			}
			t.Logf("the proof takes %s instructions of %d", said[1], most)
		})
	}
}
