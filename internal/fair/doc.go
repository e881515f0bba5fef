// Package fair is the arithmetic by which the TCP flows of a workload share one
// fair rate, so that together they keep a limit without a queue: a [Budget] is
// the limit, a [Flow] votes for how much of its share it uses, the sum of the
// votes gives the rate at which each is paced, and a [Bucket] holds what can not
// be paced. docs/pace.md says why that is stable, and docs/limits.md what it does not promise.
//
// The package is pure: it does no I/O and reads no clock, time comes in. The
// programs do the same sums in the same order (bpf/fair.h), so all of it is
// unsigned 64-bit fixed point, and for legal input no product needs more than 64
// bits. User space takes from it what a new budget is; all else runs in the
// kernel, and here to be simulated and compared.
package fair
