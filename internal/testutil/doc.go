// Package testutil is what tests of the kernel rooms stand on: throw-away
// network namespaces, veth pairs, cgroups and BPF file systems that go away
// with the test, skips that name the feature they need, and a check that a
// suite leaks nothing. It serves _test.go files and is never imported by the
// product. It does not stand in for the kernel: there are no fakes here.
package testutil
