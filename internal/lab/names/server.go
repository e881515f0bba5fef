package names

import (
	"net/netip"
	"strings"
	"sync/atomic"

	"golang.org/x/net/dns/dnsmessage"
)

// Long begins the names whose answer does not fit into a datagram: who asks by one is told to
// ask again over a connection.
const Long = "long."

// A Server is a name server: every name has the same address of IPv4, and no other.
type Server struct {
	*port
	answer    netip.Addr
	questions atomic.Uint64
}

// Serve starts a name server in a namespace. Close ends it.
func Serve(netns string, at netip.AddrPort, answer netip.Addr) (*Server, error) {
	s := &Server{answer: answer}
	var err error
	s.port, err = open(netns, at, "", s.reply)
	return s, err
}

// Questions is how many have arrived so far.
func (s *Server) Questions() uint64 { return s.questions.Load() }

func (s *Server) reply(network string, question []byte) []byte {
	s.questions.Add(1)
	var parser dnsmessage.Parser
	head, err := parser.Start(question)
	if err != nil || head.Response {
		return nil
	}
	q, err := parser.Question()
	if err != nil {
		return nil
	}
	head.Response, head.RecursionAvailable = true, true
	head.Truncated = network == "udp" && strings.HasPrefix(q.Name.String(), Long)
	message := dnsmessage.Message{Header: head, Questions: []dnsmessage.Question{q}}
	if q.Type == dnsmessage.TypeA && !head.Truncated {
		message.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
			Body:   &dnsmessage.AResource{A: s.answer.As4()},
		}}
	}
	answer, err := message.Pack()
	if err != nil {
		return nil
	}
	return answer
}
