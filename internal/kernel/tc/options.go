package tc

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink/nl"

	"github.com/weir-net/weir/internal/policy"
)

// optionSet is what Weir sets of a qdisc or class: what goes into TCA_OPTIONS and
// what is compared when it is read back. Fields that Weir leaves to the kernel
// are in neither.
type optionSet interface {
	// encode is the whole TCA_OPTIONS attribute, or nil.
	encode() *nl.RtAttr
	// words are the settings by name, in the order in which they are told.
	words() []word
	// inPlace reports that the kernel can change from other to this without a
	// new qdisc or class.
	inPlace(other optionSet) bool
}

// A word is one setting in words, exact: equal words are equal settings.
type word struct{ name, value string }

func wordString(ws []word) string {
	s := make([]string, len(ws))
	for i, w := range ws {
		s[i] = w.name + " " + w.value
	}
	return strings.Join(s, ", ")
}

// differences tells in words where have is not want.
func differences(have, want []word) []string {
	var out []string
	for _, w := range want {
		value := "not set"
		for _, h := range have {
			if h.name == w.name {
				value = h.value
			}
		}
		if value != w.value {
			out = append(out, fmt.Sprintf("%s is %s, not %s", w.name, value, w.value))
		}
	}
	return out
}

// decode reads the options of a dumped entry; nil for kinds that Weir never
// builds.
func decode(e entry) (optionSet, error) {
	if e.isClass() {
		return decodeHTBClass(e.options)
	}
	switch e.kind {
	case "htb":
		return decodeHTB(e.options)
	case "prio":
		return decodePrio(e.options)
	case "ets":
		return decodeETS(e.options)
	case "mqprio":
		return decodeMQPrio(e.options)
	case "fq":
		return decodeFQ(e.options)
	case "bfifo":
		return decodeFIFO(e.options)
	case "fq_codel":
		return decodeFQCodel(e.options)
	}
	return nil, nil
}

func tooShort(kind string, b []byte) error {
	return fmt.Errorf("parse %s options: %d bytes are too few", kind, len(b))
}

func container(flags int) *nl.RtAttr { return nl.NewRtAttr(nl.TCA_OPTIONS|flags, nil) }

func rateString(bytesPerSecond uint64) string { return policy.Rate(bytesPerSecond * 8).String() }

func mapString(m []uint8) string { return strings.Trim(fmt.Sprint(m), "[]") }
