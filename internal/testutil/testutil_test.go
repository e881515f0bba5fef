package testutil

import "testing"

func TestMain(m *testing.M) { Leaks(m) }
