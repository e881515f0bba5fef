// Package host reads what a Linux host can do and what it has, as far as plans
// need it: its network devices, the features of its kernel, the privileges of
// this process. It also enters network namespaces and mounts the BPF file
// system for the rooms beside it, and speaks to those who are logged in. It
// changes nothing else, knows nothing of policies and does not look at
// processes, cgroups or the inside of qdiscs: those belong to the packages
// workload and kernel/tc.
package host
