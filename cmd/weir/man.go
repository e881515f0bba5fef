package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// man writes a manual page for every command into a directory. Packages set
// SOURCE_DATE_EPOCH, so that building twice gives the same pages.
func (c *cli) man(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &usageError{"weir help man needs a directory", "weir help man DIR"}
	}
	date := c.now()
	if epoch := c.getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("read SOURCE_DATE_EPOCH: %w", err)
		}
		date = time.Unix(seconds, 0).UTC()
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	root := cmd.Root()
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "weir " + version(), Manual: "Weir", Date: &date}
	if err := doc.GenManTree(root, header, args[0]); err != nil {
		return fmt.Errorf("write manual pages: %w", err)
	}
	return nil
}
