package workload

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// UserID returns the uid of a user. As for chown, a name comes first and a
// number that is no name is a uid, whether or not a user has it. Users that only
// a directory service knows are found by a build with cgo alone; a static one
// knows /etc/passwd, and takes others by their number.
func UserID(name string) (uid uint32, ok bool) {
	local, _ := readPasswd() // user.Lookup may know what it does not
	return userID(name, local)
}

// userID looks in /etc/passwd first: user.Lookup reads it anew for each name,
// which ten thousand selectors would feel.
func userID(name string, local map[string]string) (uid uint32, ok bool) {
	text, known := local[name]
	if !known {
		text = name
		if _, err := strconv.ParseUint(name, 10, 32); err != nil {
			if u, err := user.Lookup(name); err == nil {
				text = u.Uid
			}
		}
	}
	id, err := strconv.ParseUint(text, 10, 32)
	// All ones is "no uid" to every system call that takes one.
	if err != nil || uint32(id) == ^uint32(0) {
		return 0, false
	}
	return uint32(id), true
}

func readPasswd() (map[string]string, error) {
	file, err := os.Open("/etc/passwd")
	if err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	defer file.Close()
	return parsePasswd(file)
}

// parsePasswd returns the users and their uids. The first line of a name
// counts, as for the C library.
func parsePasswd(r io.Reader) (map[string]string, error) {
	users := make(map[string]string)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		// "+" and "-" lines are NIS directives, not users.
		if len(fields) < 7 || fields[0] == "" || strings.ContainsAny(fields[0][:1], "#+-") {
			continue
		}
		if _, known := users[fields[0]]; !known {
			users[fields[0]] = fields[2]
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read users: %w", err)
	}
	return users, nil
}
