package traffic

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/testutil"
)

func deaf(t *testing.T, netns string, port uint16) *Deaf {
	t.Helper()
	d, err := OpenDeaf(netns, local(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never was so: %s", what)
		}
	}
}

// TestDeafKeepsLittle: what its peers write stays with them, and they learn of a reset.
func TestDeafKeepsLittle(t *testing.T) {
	ns := testutil.NewNamespace(t)
	d := deaf(t, ns.Path(), 9)
	conn, err := Where{Netns: ns.Path(), To: local(9)}.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const written = 2 << 20 // less than the sender's buffer has room for
	if _, err := conn.Write(make([]byte, written)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it accepts", func() bool { return d.Connections() == 1 })
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var unacked int
	if err := onSocket(raw, func(fd int) (err error) {
		unacked, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if unacked < written-8*deafBuffer {
		t.Errorf("of %d bytes %d wait here", written, unacked)
	}
	if err := d.Reset(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || d.Connections() != 0 {
		t.Errorf("after the reset %v, %d connections", err, d.Connections())
	}
}
