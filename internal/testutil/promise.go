package testutil

import "testing"

// A Promise is a row of docs/KERNELS.md: what Weir says that it keeps, and what
// tests show on every kernel. The words and the ladder of each are in
// internal/tools/kernels.
type Promise string

// The promises.
const (
	Order       Promise = "order"
	Follow      Promise = "follow"
	Local       Promise = "local"
	Tag         Promise = "tag"
	Births      Promise = "births"
	Forwarded   Promise = "forwarded"
	Limit       Promise = "limit"
	LimitQueued Promise = "limit in a queue"
	LimitOfLink Promise = "limit of a link"
	Receive     Promise = "limit of what is received"
	Memory      Promise = "memory"
	VRF         Promise = "vrf"
	NetPrio     Promise = "net_prio"
	V1Path      Promise = "v1 path"
	Drift       Promise = "drift"
	Undo        Promise = "undo"
)

// Attributes of a test that make it a proof, as go test -json tells them.
const (
	PromiseAttr = "promise"
	RungAttr    = "rung"
)

// Proves says that the test shows p on this kernel, and so decides a cell of
// docs/KERNELS.md: proven where it passes, broken where it fails, not possible
// where it is skipped. It is called before [Needs].
func Proves(t testing.TB, p Promise) {
	t.Helper()
	t.Attr(PromiseAttr, string(p))
}

// By says on which rung the test stands, as soon as that is known: before
// [Needs] where the test asks for the rung, else when Weir has chosen it.
func By(t testing.TB, rung string) {
	t.Helper()
	t.Attr(RungAttr, rung)
}
