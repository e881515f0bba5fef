// Package plan decides: which rung of the ladder a link gets, which kernel state
// a policy asks for, how the state that was read differs from it, and what that
// says of each promise. It is pure: no I/O, no clock, no map order in its
// output. What the host can do comes in as [Facts], what the kernel holds as
// [State]; what shall be done goes out as each [Difference] that plan prints,
// apply mends and status compares. The steps of an apply are not made here: they
// are package agent's.
package plan
