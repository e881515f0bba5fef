// Package state keeps what the kernel can not: the policy that was applied, the
// contract numbers, what was replaced, the journal of a change under way and the
// proof of the last one. It knows files and locks, and neither what a policy
// means nor what a kernel object is.
package state
