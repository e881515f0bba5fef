// Command kernels tells from the events of test runs which promise holds on
// which kernel. It reads every NAME.json of a directory, a run each (go test
// -json), and
//
//	-data FILE     writes what they prove,
//	-page FILE     writes it for people, which is docs/KERNELS.md,
//	-against FILE  holds it against data that was written before.
//
// A test takes part by testutil.Proves. A promise that a failed test breaks, or
// that no test looked at, makes the command end with 1. It runs no tests.
package main
