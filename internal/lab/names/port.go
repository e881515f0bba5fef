package names

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-net/weir/internal/host"
)

// patience is how long a question may take once it is here, and a connection last.
const patience = 2 * time.Second

// A port is where questions come in. answer gets one and how it came, udp or tcp; nil is no answer.
type port struct {
	packets *net.UDPConn
	streams net.Listener
	answer  func(network string, question []byte) []byte
	wg      sync.WaitGroup
}

// open listens in a namespace; with a device, bound to that.
func open(netns string, at netip.AddrPort, device string, answer func(string, []byte) []byte) (*port, error) {
	config := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if device == "" {
			return nil
		}
		if failed := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), device) }); failed != nil {
			return failed
		}
		return err
	}}
	config.SetMultipathTCP(false)
	p := &port{answer: answer}
	err := host.InNetns(netns, func() error {
		packets, err := config.ListenPacket(context.Background(), "udp", at.String())
		if err != nil {
			return err
		}
		p.packets = packets.(*net.UDPConn)
		if p.streams, err = config.Listen(context.Background(), "tcp", at.String()); err != nil {
			return errors.Join(err, packets.Close())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("answer names at %s: %w", at, err)
	}
	p.wg.Go(p.datagrams)
	p.wg.Go(p.connections)
	return p, nil
}

// Close ends it, and waits for the answers that are being given.
func (p *port) Close() error {
	err := errors.Join(p.packets.Close(), p.streams.Close())
	p.wg.Wait()
	return err
}

func (p *port) datagrams() {
	data := make([]byte, 4096)
	for {
		n, from, err := p.packets.ReadFromUDPAddrPort(data)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // somebody did not wait for an answer
		}
		question := append([]byte(nil), data[:n]...)
		p.wg.Go(func() {
			if answer := p.answer("udp", question); answer != nil {
				_, _ = p.packets.WriteToUDPAddrPort(answer, from)
			}
		})
	}
}

func (p *port) connections() {
	for {
		conn, err := p.streams.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			for {
				question, err := readMessage(conn)
				if err != nil {
					return
				}
				answer := p.answer("tcp", question)
				if answer == nil || writeMessage(conn, answer) != nil {
					return
				}
			}
		})
	}
}

// readMessage reads a message from a connection, where its length comes first.
func readMessage(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint16(length[:]))
	_, err := io.ReadFull(r, message)
	return message, err
}

func writeMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...))
	return err
}
