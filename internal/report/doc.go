// Package report turns what a lab measured into what a reader sees: summaries
// and ratios of samples, the JSON form of a result, a table for a terminal and
// one self-contained HTML page. It is pure: no clock, no files, no network, its
// output goes to the io.Writer that it is given and depends on the Result alone.
// It is not the place that measures, nor the one that decides what a lab claims.
package report
