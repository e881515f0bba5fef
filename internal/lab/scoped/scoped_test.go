package scoped

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/weir-net/weir/internal/lab"
	"github.com/weir-net/weir/internal/report"
	"github.com/weir-net/weir/internal/testutil"
)

func TestSSH(t *testing.T) {
	testutil.Needs(t, "root", "cgroup2")
	c, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	r, err := lab.Run(ctx, "ssh", lab.Options{Controller: c, Repetitions: 2, Version: "test", Progress: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	_ = report.Table(os.Stdout, r, report.Style{Width: 100})
}
