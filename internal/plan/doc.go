// Package plan decides: which rung of a ladder a link gets, which kernel state
// a policy asks for, and which steps lead from the state that was read to the
// state that is wanted. It is pure: no I/O, no clock, no map order in its
// output. What the host can do comes in as [Facts], what the kernel holds as
// [State]; what shall be done goes out as steps that plan prints, apply runs
// and status compares.
package plan
