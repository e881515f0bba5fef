// Package vm tests the scripts beside it, which run a command on another
// kernel in a virtual machine: that output and status come back, and that a
// machine which panics, hangs or powers off is a failure with its console and
// never a hang of the run. README.md tells how to use them; the project's own
// tests on other kernels are run by matrix and not by this package.
package vm
