// Package lab runs experiments in throw-away network namespaces that show the
// effect of a contract before and after: real hosts' stacks, real queues, real
// TCP. It measures and judges; how contracts come into force it leaves to the
// Controller that it is given. It is not a benchmark of the machine and makes no
// use of the host's own devices.
//
// Namespaces, devices and processes of a lab have no name outside of its process
// and end with it. Its cgroups, and what its Controller makes, outlive a process
// that is killed: they are the Controller's to find.
package lab
