package main

import "testing"

func TestShellLine(t *testing.T) {
	for want, words := range map[string][]string{
		"weir apply policy.yaml":               {"weir", "apply", "policy.yaml"},
		"weir run -- sh -c 'echo $HOME'":       {"weir", "run", "--", "sh", "-c", "echo $HOME"},
		`weir apply 'my policy.yaml'`:          {"weir", "apply", "my policy.yaml"},
		`weir apply 'it'\''s.yaml' ''`:         {"weir", "apply", "it's.yaml", ""},
		"weir set --priority eth0=3,default=1": {"weir", "set", "--priority", "eth0=3,default=1"},
	} {
		if got := shellLine(words); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
