package plan

// SocketMemory is what a TCP socket, or several, hold in bytes as the kernel charges
// them: what is in its buffers, with what the packets around the data cost.
type SocketMemory struct {
	Receive  uint64 `json:"receive"`  // arrived, not read yet; what came out of order included
	Send     uint64 `json:"send"`     // written, not sent or not acknowledged yet
	Reserved uint64 `json:"reserved"` // charged ahead, less than a page unless it is about to be used
}

// Held is what counts against the host's tcp_mem.
func (m SocketMemory) Held() uint64 { return m.Receive + m.Send + m.Reserved }

// Plus is what both hold.
func (m SocketMemory) Plus(n SocketMemory) SocketMemory {
	return SocketMemory{m.Receive + n.Receive, m.Send + n.Send, m.Reserved + n.Reserved}
}

// TCPMemory is what all TCP sockets of a host hold together, of what tcp_mem lets them, in bytes.
type TCPMemory struct {
	Used uint64 `json:"used"`
	// From Pressure on all sockets save, until it is below Low again; above Max the kernel gives none
	// and drops. All are 0 where they are not known.
	Low      uint64 `json:"low"`
	Pressure uint64 `json:"pressure"`
	Max      uint64 `json:"max"`
}

// Known reports whether the limits are known.
func (m TCPMemory) Known() bool { return m.Max != 0 }

// Presses reports whether so much is used that sockets have to save.
func (m TCPMemory) Presses() bool { return m.Known() && m.Used >= m.Pressure }

// Full reports whether there is no more.
func (m TCPMemory) Full() bool { return m.Known() && m.Used >= m.Max }
