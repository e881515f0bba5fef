// Package cost says what networking takes in CPU time: of whom, for whom, at what. It makes a
// [Report] of two readings of the meter, and judges what a compute loop was left with.
// It is pure: package observe takes the readings, names come in as functions.
package cost
