package opstate

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// encoding is the properties that the states of a stream have in common. Only
// states with equal encodings can share a stream. It is the Encoding of a
// format.StateMeta:
//
//	u8  version of the envelope, 0 for raw state
//	u8  bits: 1 compressed, 2 a snappy header per state, 4 unsplit
//	if unsplit
//	  UTF class, u16 n, n x (UTF name, u8 mode), envelope to the end
type encoding struct {
	version    int32
	compressed bool
	headers    bool // one snappy header per state, not one for all
	unsplit    *unsplit
}

// unsplit is an envelope that could not be read to its end. It is kept as a whole,
// with the states that it contains.
type unsplit struct {
	why    string // for example the unknown class
	states []format.NamedState
	bytes  []byte
}

// describe returns a text about an encoding.
func describe(w format.Wire) string {
	f, err := parseEncoding(w)
	if err != nil {
		return "of unknown encoding"
	}
	how := fmt.Sprintf("of version %d", f.version)
	if f.version == 0 {
		how = "of raw state"
	}
	switch {
	case f.compressed && f.headers:
		how += ", each state compressed separately"
	case f.compressed:
		how += ", compressed"
	}
	if f.unsplit != nil {
		how += ", with an envelope that cannot be split"
	}
	return how
}

func (f encoding) wire() (format.Wire, error) {
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
	why := f.unsplit.why // text from the file
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

func parseEncoding(w format.Wire) (encoding, error) {
	c := java.NewCursor([]byte(w))
	f := encoding{version: int32(c.U8())}
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
		return encoding{}, format.Errorf(format.ErrUnsupported, "invalid encoding of operator state")
	}
	return f, nil
}

// SplitEncoding returns an encoding without the envelope in it, and that envelope,
// which is nil unless the envelope could not be split.
func (c *Codec) SplitEncoding(w format.Wire) (encoding format.Wire, whole []byte) {
	f, err := parseEncoding(w)
	if err != nil || f.unsplit == nil {
		return w, nil
	}
	whole = f.unsplit.bytes
	f.unsplit = nil
	if encoding, err = f.wire(); err != nil {
		return w, nil
	}
	return encoding, whole
}

// holds reports whether the envelope contains exactly these states.
func (u *unsplit) holds(states []format.StateRuns) bool {
	return len(states) == len(u.states) && !slices.ContainsFunc(states, func(s format.StateRuns) bool {
		return !slices.ContainsFunc(u.states, func(o format.NamedState) bool { return o.Name == s.Name && o.Mode == s.Mode })
	})
}

// EncodingFor returns the encoding in which a release reads the states of a stream:
// the same encoding, or one that Build can write with the same elements. It returns
// ErrUnsupported if no such encoding exists: the release does not read compressed
// operator state, or reads serializers in another format.
func (c *Codec) EncodingFor(w format.Wire, r flink.Release) (format.Wire, error) {
	f, err := parseEncoding(w)
	if err != nil || f.version == 0 {
		return w, err
	}
	reads := r.Facts().OperatorState
	newest := int32(reads.Newest())
	switch {
	case reads.Has(int(f.version)):
		return w, nil
	case f.version < newest:
		return "", format.Errorf(format.ErrUnsupported, "operator state of version %d contains its serializers as Java objects, which Flink %v rejects", f.version, r)
	case newest < minWritten:
		return "", format.Errorf(format.ErrUnsupported, "operator state of version %d cannot be written in version %d, which Flink %v reads: it contains serializers as Java objects", f.version, newest, r)
	case f.compressed:
		return "", format.Errorf(format.ErrUnsupported, "Flink %v does not read compressed operator state", r)
	}
	f.version, f.headers = newest, false
	if f.unsplit != nil {
		u := *f.unsplit
		u.bytes = binary.BigEndian.AppendUint32(nil, uint32(newest))
		u.bytes = append(u.bytes, f.unsplit.bytes[5:]...) // without the compression flag
		f.unsplit = &u
	}
	return f.wire()
}
