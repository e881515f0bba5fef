// Package thread gives a test a thread of its own, for what changes the
// namespaces of the thread that it runs on. It knows nothing of namespaces.
package thread
