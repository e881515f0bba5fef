package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker in a release.
var release string

// version is the release, or the version of the module as go install knows it.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// A versionReport is the JSON of weir version.
type versionReport struct {
	SchemaVersion string `json:"schema_version"`
	Version       string `json:"version"`
	Go            string `json:"go"`
	Platform      string `json:"platform"` // as Go names it: linux/amd64
}

func (c *cli) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version [--json]",
		Short: "Print the version",
		Example: `  weir version
  weir version --json`,
		Args:              nothing,
		ValidArgsFunction: first(),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return c.printJSON(versionReport{schemaVersion, version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(c.stdout, "weir %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
