// Command weir gives every workload on a Linux host its network contract and
// proves that the contract is kept. This package is the door: it turns a command
// line into calls of the packages below internal, prints what they return and
// ends with the exit code that "weir help exit-codes" documents. A file is one
// command, or one noun that several of them need. Nothing is decided here that a
// second program would have to decide again, and nothing but this package knows
// of arguments, exit codes, colours or the process's environment.
package main
