package plan

import "testing"

func TestSocketMemory(t *testing.T) {
	a, b := SocketMemory{1, 20, 300}, SocketMemory{4000, 50000, 600000}
	if sum := a.Plus(b); sum != (SocketMemory{4001, 50020, 600300}) || sum.Held() != 654321 {
		t.Errorf("%+v holds %d", sum, sum.Held())
	}
}

func TestTCPMemory(t *testing.T) {
	for used, want := range map[uint64][2]bool{0: {}, 19: {}, 20: {true, false}, 29: {true, false}, 30: {true, true}} {
		m := TCPMemory{Used: used, Low: 10, Pressure: 20, Max: 30}
		if got := [2]bool{m.Presses(), m.Full()}; got != want || !m.Known() {
			t.Errorf("%+v: presses and is full %v, want %v", m, got, want)
		}
	}
	if m := (TCPMemory{Used: 1 << 40}); m.Known() || m.Presses() || m.Full() {
		t.Errorf("%+v: nothing can be said of what is not known", m)
	}
}
