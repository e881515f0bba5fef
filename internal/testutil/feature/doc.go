// Package feature asks the running kernel, by name, for what a test needs:
// "mqprio qdisc", "tcx", "root", "clang-14". Tests skip by these names and the
// run is failed when a test skipped for a feature that is present, so a probe
// here decides by trying and never by a version number. It serves tests and
// their tools only: what the product uses is probed by internal/host, and the
// two are kept apart so that one can contradict the other.
package feature
