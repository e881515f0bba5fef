// Package testevent reads the events of go test -json, and of a run on another
// kernel, for the tools that count and chart them. It judges nothing.
package testevent
