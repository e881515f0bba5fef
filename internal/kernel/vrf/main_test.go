package vrf

import (
	"testing"

	"github.com/weir-net/weir/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Leaks(m) }
