package opstate

import (
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/java"
)

// form is how a stream is made: what its states must have in common to share
// another one. It travels as the Form of a format.StateMeta:
//
//	u8  version of the envelope, 0 for raw state
//	u8  bits: 1 compressed, 2 a snappy header per state, 4 unsplit
//	if unsplit
//	  UTF class, u16 n, n x (UTF name, u8 mode), envelope to the end
type form struct {
	version    int32
	compressed bool
	headers    bool // a snappy header in front of each state, not one for all
	unsplit    *unsplit
}

// unsplit is an envelope that could not be walked to its end: it is kept as a
// whole, with the states that it describes.
type unsplit struct {
	why    string // the class that is not known, and so on
	states []format.NamedState
	bytes  []byte
}

func (f form) wire() (format.Wire, error) {
	var bits byte
	if f.compressed {
		bits |= 1
	}
	if f.headers {
		bits |= 2
	}
	if f.unsplit == nil {
		return format.Wire([]byte{byte(f.version), bits}), nil
	}
	why := f.unsplit.why // holds what stands in the file
	why = strings.ToValidUTF8(why[:min(len(why), 1000)], "")
	p, err := java.AppendText([]byte{byte(f.version), bits | 4}, format.NewText(why))
	if err != nil {
		return "", err
	}
	n := len(f.unsplit.states)
	if n > 0xffff {
		return "", format.Errorf(format.ErrLimit, "%d states in one stream", n)
	}
	p = append(p, byte(n>>8), byte(n))
	for _, s := range f.unsplit.states {
		if p, err = java.AppendText(p, s.Name); err != nil {
			return "", err
		}
		p = append(p, byte(s.Mode))
	}
	return format.Wire(append(p, f.unsplit.bytes...)), nil
}

func parseForm(w format.Wire) (form, error) {
	c := java.NewCursor([]byte(w))
	f := form{version: int32(c.U8())}
	bits := c.U8()
	f.compressed, f.headers = bits&1 != 0, bits&2 != 0
	if bits&4 != 0 {
		f.unsplit = &unsplit{why: c.Text().String()}
		for range c.U16() {
			f.unsplit.states = append(f.unsplit.states, format.NamedState{Name: c.Text(), Mode: format.Mode(c.U8())})
			if c.Err() != nil {
				break
			}
		}
		f.unsplit.bytes = c.Bytes(c.Remaining(), "an envelope")
	}
	if c.Err() != nil || bits > 7 || c.Remaining() > 0 {
		return form{}, format.Errorf(format.ErrUnsupported, "the state was not described by this codec")
	}
	return f, nil
}

// holds is whether the envelope describes exactly these states.
func (u *unsplit) holds(states []format.StateRuns) bool {
	return len(states) == len(u.states) && !slices.ContainsFunc(states, func(s format.StateRuns) bool {
		return !slices.ContainsFunc(u.states, func(o format.NamedState) bool { return o.Name == s.Name && o.Mode == s.Mode })
	})
}
