package fair

import (
	"math/big"

	"pgregory.net/rapid"
)

// Generators of legal input; rapid likes the ends of each.
var (
	legalLimit  = rapid.Uint64Range(MinLimit, MaxLimit)
	legalWeight = rapid.Uint64Range(1, MaxWeight)
	legalPacket = rapid.Uint64Range(1, MaxPacket)
	legalTime   = rapid.Uint64Range(1, MaxTime)
	legalDepth  = rapid.Uint64Range(0, MaxDepth)
	legalLoad   = rapid.Uint64Range(0, MaxFlows*(One+One/8))
	legalTrim   = rapid.Uint64Range(One-One/128, One+7*One/32)
)

// drawBudget is a budget in any state that legal input leads to.
func drawBudget(t *rapid.T) *Budget {
	b := NewBudget(legalLimit.Draw(t, "limit"), legalTime.Draw(t, "start"))
	b.Load, b.Trim = legalLoad.Draw(t, "load"), legalTrim.Draw(t, "trim")
	if rapid.Bool().Draw(t, "bloc") {
		b = b.NewBloc(legalWeight.Draw(t, "weight"))
		b.Load = min(legalLoad.Draw(t, "load of the bloc"), MaxFlows*One)
	}
	return b
}

func wide(v uint64) *big.Int { return new(big.Int).SetUint64(v) }

// product and over do in integers of any size what the package does in 64 bits.
func product(first uint64, more ...uint64) *big.Int {
	p := wide(first)
	for _, f := range more {
		p.Mul(p, wide(f))
	}
	return p
}

func over(n *big.Int, d uint64) *big.Int { return new(big.Int).Div(n, wide(d)) }

// same says whether 64 bits held what integers of any size hold.
func same(t *rapid.T, what string, got uint64, want *big.Int) {
	if wide(got).Cmp(want) != 0 {
		t.Fatalf("%s = %d, %d without overflow", what, got, want)
	}
}
