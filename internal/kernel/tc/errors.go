package tc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// What can be wrong with a link. Every error of this package that is about the
// kernel's answer is an [*Error] that wraps one of these, or an errno.
var (
	ErrNoLink      = errors.New("no such link")
	ErrUnsupported = errors.New("not supported")
	ErrPermission  = errors.New("needs CAP_NET_ADMIN")
	ErrForeign     = errors.New("root qdisc is not Weir's")
	ErrDrift       = errors.New("differs from what Weir builds")
	ErrNoReturn    = errors.New("root qdisc could not be put back")
)

// An Error says what about which link went wrong.
type Error struct {
	Link  string // its name, or "#7" where it has none (any more)
	Doing string // "add class 7e1f:10 below 7e1f:1"; may be empty
	Text  string // the whole of the rest in words
	Err   error  // one of the sentinels, or the kernel's errno
	Cause error  // the kernel's errno with its own text as evidence; may be nil
}

// Error says where, in the middle of what, and then the rest.
func (e *Error) Error() string {
	parts := []string{"link " + e.Link}
	if e.Doing != "" {
		parts = append(parts, e.Doing)
	}
	return strings.Join(append(parts, e.Text), ": ")
}

// Unwrap gives the sentinel and the kernel's answer.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// refuse makes an error of our own judgement.
func refuse(link int, sentinel error, format string, args ...any) error {
	return &Error{Link: linkName(link), Text: fmt.Sprintf(format, args...), Err: sentinel}
}

// kernelError turns the kernel's answer to a request into words. feature is
// what the request asks of the kernel ("ets qdisc") where ENOENT and EOPNOTSUPP
// can only mean that it has no such thing, else "".
func kernelError(link int, doing, feature string, cause error) error {
	e := &Error{Link: linkName(link), Doing: doing, Text: cause.Error(), Err: cause, Cause: cause}
	switch {
	case errors.Is(cause, unix.ENODEV):
		e.Err, e.Text, e.Doing = ErrNoLink, ErrNoLink.Error(), ""
	case errors.Is(cause, unix.EPERM), errors.Is(cause, unix.EACCES):
		e.Err, e.Text = ErrPermission, ErrPermission.Error()
	case feature == "":
	case errors.Is(cause, unix.ENOENT):
		e.Err, e.Text, e.Doing = ErrUnsupported, "kernel has no "+feature, ""
	case errors.Is(cause, unix.EOPNOTSUPP):
		e.Err, e.Doing = ErrUnsupported, ""
		e.Text = fmt.Sprintf("device or kernel takes no %s of this form: %v", feature, cause)
	}
	return e
}

// offloadError is kernelError for what a device without the hardware refuses
// with EOPNOTSUPP, or with EINVAL (from 6.4 on).
func offloadError(link int, feature string, cause error) error {
	if !errors.Is(cause, unix.EOPNOTSUPP) && !errors.Is(cause, unix.EINVAL) {
		return kernelError(link, "", feature, cause)
	}
	text := fmt.Sprintf("device takes no %s in hardware: %v", feature, cause)
	return &Error{Link: linkName(link), Text: text, Err: ErrUnsupported, Cause: cause}
}

// linkName is for errors only: it costs a request.
func linkName(link int) string {
	if l, err := netlink.LinkByIndex(link); err == nil {
		return l.Attrs().Name
	}
	return fmt.Sprintf("#%d", link)
}
