// Package screen shows a reading that is taken again and again on a terminal: it has the
// whole of it while it runs, and gives it back as it was after any end that a process can
// see, a panic included. What is read and how it looks is the caller's; this package knows
// of modes, sizes, keys and signals alone. It is not for what is printed once, and draws
// no widgets: a reading is text for a width and a height.
package screen
