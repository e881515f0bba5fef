package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-net/weir/internal/agent"
	"github.com/weir-net/weir/internal/plan"
)

// A rule that loses and whose limit binds is told from one that only loses.
func TestExplanation(t *testing.T) {
	agrees := true
	x := &agent.Explanation{
		Subject: "process 7 (rsync)", Workload: "jobs", Agrees: &agrees, Kernel: "says the same",
		Reasons: []plan.Reason{
			{Workload: "jobs", Rule: "cgroup /tenant/job-1", Wins: true, Why: "its own cgroup"},
			{Workload: "tenant", Rule: "cgroup /tenant", Binds: true, Limits: []string{"at most 50Mbit of all links together", "at most 10Mbit of eth0"},
				Why: "comes after cgroup /tenant/job-1; its limit binds all the same"},
			{Workload: "user", Rule: "user id 7", Why: "comes after cgroup /tenant/job-1"},
		},
		Promises: []string{"eth0: priority 2"},
	}
	const want = `
process 7 (rsync) belongs to jobs
         rule                  workload
  wins   cgroup /tenant/job-1  jobs
  binds  cgroup /tenant        tenant
  loses  user id 7             user
  why: its own cgroup
  on eth0: priority 2
  with all of tenant: at most 50Mbit of all links together, at most 10Mbit of
              eth0
  the kernel: says the same
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), explanation(painter{}, 80, x)); diff != "" {
		t.Error(diff)
	}
}
