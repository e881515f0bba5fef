package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/report"
)

// writable refuses, before minutes are spent, a file that could not be written
// after them.
func writable(path string) error {
	if path == "" {
		return nil
	}
	at := path
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		at = filepath.Dir(path)
	case err == nil && info.IsDir():
		return fmt.Errorf("write %s: %w", path, unix.EISDIR)
	}
	if err := unix.Access(at, unix.W_OK); err != nil {
		return fmt.Errorf("write %s: %s: %w", path, at, err)
	}
	return nil
}

// somewhere is a name in the current directory, or in a new one where that can
// not be written to.
func somewhere(name string) (string, error) {
	if unix.Access(".", unix.W_OK) == nil {
		return "." + string(filepath.Separator) + name, nil
	}
	dir, err := os.MkdirTemp("", "weir-lab-")
	if err != nil {
		return "", fmt.Errorf("find a place for the page: %w", err)
	}
	return filepath.Join(dir, name), nil
}

func writePage(path string, r report.Result) error {
	var b bytes.Buffer
	if err := report.Page(&b, r); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func writeResult(path string, r report.Result) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	return nil
}

func (c *cli) labPage() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "page -o PAGE FILE",
		Short: "Make the page of a lab again, from its JSON alone",
		Example: `  sudo weir lab run ssh --keep ssh.json
  weir lab page ssh.json -o ssh.html`,
		Args: exactly("FILE"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output == "" {
				return &usageError{"weir lab page needs -o PAGE", "weir lab page " + shellWord(args[0]) + " -o PAGE"}
			}
			text, err := c.read(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("read result: %w", err)
			}
			var r report.Result
			if err := json.Unmarshal(text, &r); err != nil {
				return fmt.Errorf("read result %s: %w", args[0], err)
			}
			if r.SchemaVersion != report.SchemaVersion || r.Lab == "" {
				return fmt.Errorf("read result %s: it is no result of a lab in form %s", args[0], report.SchemaVersion)
			}
			return writePage(output, r)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the `PAGE` here")
	return cmd
}
