// Package names answers questions for names inside of a lab's network namespaces: a name
// server that has one address for whatever it is asked, and a stub before it such as
// systemd-resolved runs on a host. Both answer datagrams and connections. It is no resolver: it
// knows no zones, and caches nothing.
package names
