// Package steer reads and changes to which CPUs the kernel and a device hand the packets
// that the device receives: RPS and RFS of its queues, its RSS table, its flow rules, and
// where the interrupts of its queues come. One setting is read, or written, at a time, and
// what to set and in which order is the caller's, as is what was there before.
//
// It decides nothing, follows no traffic, and leaves what a device sends alone.
package steer
