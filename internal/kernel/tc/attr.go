package tc

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// The upper two bits of an attribute's type are flags.
const (
	nestedFlag = unix.NLA_F_NESTED
	attrMask   = 0x3fff
)

// eachAttr walks a run of netlink attributes; the flags are cut off the types.
func eachAttr(b []byte, fn func(typ uint16, value []byte)) error {
	for len(b) >= unix.SizeofRtAttr {
		n := int(native.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			return fmt.Errorf("parse netlink attribute: length %d in %d bytes", n, len(b))
		}
		fn(native.Uint16(b[2:])&attrMask, b[unix.SizeofRtAttr:n])
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}
