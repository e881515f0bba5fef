package workload

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Offsets in struct linux_dirent64.
const (
	direntReclen = 16
	direntType   = 18
	direntName   = 19
)

// appendDirectories appends the names of the directories in a buffer of
// getdents64, but "." and "..". os.ReadDir would make a string of every control
// file too: for ten thousand cgroups that is most of the time of a walk.
func appendDirectories(names []string, buffer []byte) []string {
	for len(buffer) > direntName {
		length := int(binary.NativeEndian.Uint16(buffer[direntReclen:]))
		if length <= direntName || length > len(buffer) {
			return names
		}
		record := buffer[:length]
		buffer = buffer[length:]
		if record[direntType] != unix.DT_DIR {
			continue
		}
		name := record[direntName:]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if string(name) != "." && string(name) != ".." {
			names = append(names, string(name))
		}
	}
	return names
}
