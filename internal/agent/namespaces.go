package agent

import (
	"errors"
	"io/fs"

	"github.com/weir-net/weir/internal/host"
	"github.com/weir-net/weir/internal/workload"
)

// inEachNamespace does something in each network namespace that has a process. One whose
// process ends meanwhile is passed over, and one that we may not look at.
func inEachNamespace(do func() error) error {
	namespaces, err := workload.Namespaces()
	if err != nil {
		return err
	}
	for _, path := range namespaces {
		err := host.InNetns(path, do)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
