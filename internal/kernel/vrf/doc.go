// Package vrf makes routing domains of their own and moves links into them and back, each
// with its addresses, its routes of all tables and its neighbours.
//
// The kernel takes a link down and up to move it, and with that forgets its IPv6
// addresses, its routes and its neighbours. So all of that is on file before the link
// moves, and is put back behind it; who is killed meanwhile leaves what the next one needs.
//
// What is declared of a VRF beside is on file as well, with what a declared route replaces,
// before it is there: so just that is taken away in the end, and what was replaced comes back.
//
// Beside the devices it makes what holds for all of them: rules that ask a VRF's table
// before the local one, so that addresses are those of the VRF; sysctls by which services
// outside of any VRF answer in all; and, for connections that were open before, a rule for
// each address that moved, since their sockets are bound to nothing. It moves no sockets.
package vrf
