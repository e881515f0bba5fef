package main

import (
	"context"
	"os"

	"github.com/weir-net/weir/internal/lab"
)

func main() {
	// The hosts of a lab are this program again.
	if code, ours := lab.TrafficMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); ours {
		os.Exit(code)
	}
	ctx, stop := untilSignal(context.Background())
	defer stop()
	os.Exit(run(ctx, system()))
}
