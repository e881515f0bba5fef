// Package agent conducts: it asks the edge what is, lets package plan decide,
// and has the edge make it true, step by step, with a journal that a crash can
// be picked up from. Every verb of the command line that touches a host is a
// method here. It holds no mechanism of its own: how a table is filled or a
// qdisc built is the business of the rooms.
package agent
