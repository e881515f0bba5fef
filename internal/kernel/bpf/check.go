package bpf

import "errors"

// Check says whether this Weir can work with what is pinned: nothing, or the
// memory of a Weir whose tables have the same shape. It returns an error that
// wraps ErrOtherVersion if not, and changes nothing.
func (r Room) Check() error {
	m, err := r.openMemory(false)
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	m.Close()
	return nil
}
