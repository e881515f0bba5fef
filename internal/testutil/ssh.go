package testutil

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// SSH makes keys and a configuration for a real sshd that listens at an address: the arguments
// that start it in the foreground, and those by which ssh and scp reach it as root.
func SSH(t testing.TB, address string) (server, client []string) {
	t.Helper()
	Needs(t, "ssh", "sshd", "ssh-keygen")
	dir := t.TempDir()
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"host", "user"} {
		Output(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key))
	}
	public, err := os.ReadFile(filepath.Join(dir, "user.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keys := write("authorized_keys", string(public))
	config := write("sshd_config", fmt.Sprintf(`
ListenAddress %s
HostKey %s
AuthorizedKeysFile %s
StrictModes no
UsePAM no
PidFile none
Subsystem sftp internal-sftp
`, address, filepath.Join(dir, "host"), keys))
	return []string{"-D", "-e", "-f", config}, []string{
		"-q", "-i", filepath.Join(dir, "user"), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes",
		"-o", "ConnectTimeout=10",
	}
}
