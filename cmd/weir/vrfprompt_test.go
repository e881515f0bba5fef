package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

// Each shell that is installed shows the namespace and the VRF that it is in, after the name
// of the host if the prompt has that, and before the prompt if not; read twice, a snippet does it once.
func TestVRFPrompt(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2", "sh")
	dir := filepath.Join(testutil.Cgroup2(t), "vrf", "mgmt", "below")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cgroup, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cgroup.Close()
	const blue = `mount -t tmpfs none /run && mkdir /run/netns && touch /run/netns/blue && mount --bind /proc/self/ns/net /run/netns/blue && exec "$@"`
	for _, tt := range []struct {
		script string
		want   string
		shell  []string
	}{
		{`PS1='u@h\h:\w\$ '; PROMPT_COMMAND=true; . ./s; . ./s; eval "$PROMPT_COMMAND"; echo "$PROMPT_COMMAND $PS1 $__weir_net"`,
			`__weir_vrf;true u@h\h${__weir_net}:\w\$  :blue:mgmt`, []string{"bash", "--norc", "-c"}},
		{`PS1='$ '; . ./s; eval "$PROMPT_COMMAND"; echo "${PS1@P}"`, "blue:mgmt $ ", []string{"bash", "--norc", "-c"}},
		{`PROMPT='u@h%m:%# '; . ./s; . ./s; $precmd_functions; echo $precmd_functions $PROMPT $psvar[9]`,
			"__weir_vrf u@h%m%9v:%#  :blue:mgmt", []string{"zsh", "-f", "-c"}},
		{`PROMPT='> '; . ./s; $precmd_functions; print -P $PROMPT`, ":blue:mgmt > ", []string{"zsh", "-f", "-c"}},
		{`function fish_prompt; echo -n (prompt_login)'> '; end; function prompt_login; echo -n u@h; end; source s; source s; fish_prompt`,
			"u@h:blue:mgmt> ", []string{"fish", "-N", "-c"}},
		{`function fish_prompt; echo -n '> '; end; source s; source s; fish_prompt`, "blue:mgmt > ", []string{"fish", "-N", "-c"}},
	} {
		shell := tt.shell[0]
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		snippet, err := weir(t, "vrf", "prompt", shell).Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", append([]string{"-c", blue, "sh"}, append(tt.shell, tt.script)...)...)
		cmd.Dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(cmd.Dir, "s"), snippet, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd()), Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != tt.want {
			t.Errorf("%s, %s:\n got %q\nwant %q (%v)", shell, tt.script, got, tt.want, err)
		}
	}
}
