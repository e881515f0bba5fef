// Package lab runs experiments in throw-away network namespaces that show the
// effect of a contract before and after: real hosts' stacks, real queues, real
// TCP. It measures and judges; how contracts come into force it leaves to the
// Controller that it is given. It is not a benchmark of the machine and makes no
// use of the host's own devices.
//
// Nothing of a lab has a name outside of its process except its cgroups, so a
// lab that is killed leaves those alone; Leftovers finds and removes them.
package lab
