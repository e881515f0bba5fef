// Command testsum reads the events of go test -json on standard input and
// prints what a person wants of them: a line a package with every failure in
// full as it comes, every skip by the feature it names, the slowest tests, the
// failures' names again, and as the last line "N passed, N failed, N skipped".
// It also polices skips: one that names no feature, or a feature that the kernel
// has, is a failure. It does not run tests, and it knows nothing of what they
// test.
package main
