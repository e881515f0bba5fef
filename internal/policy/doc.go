// Package policy owns Weir's vocabulary: what a user may ask for, as written in
// a policy file and as meant after it was checked. Parse turns text into a
// [Policy] or into every [Diagnostic] of the file at once; past that point an
// invalid value cannot exist. The package does no I/O and knows nothing of the
// host: whether a named interface, user or executable exists is asked in
// package plan.
package policy
