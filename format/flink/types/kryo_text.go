package types

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// textEncoding is how a string is encoded in Kryo.
type textEncoding int

const (
	textValue textEncoding = iota // characters below 0x80 if they are few
	textName                      // characters below 0x80, however many
	textUnits                     // never
)

// nameEncoding is the encoding of the names of classes.
func (k *kryoState) nameEncoding() textEncoding {
	if k.version == kryo5 {
		return textName
	}
	return textValue
}

// text reads a string: characters below 0x80 whose last has bit 7 set, or a length
// and UTF-8 of its UTF-16 units.
func (k *kryoState) text(r *reader, as textEncoding) string {
	off := r.Offset()
	b := r.U8()
	var s []byte
	if b&0x80 == 0 {
		for s = append(s, b); b&0x80 == 0 && r.Err() == nil; {
			b = r.U8()
			s = append(s, b&0x7f)
		}
	} else {
		n := uint64(b & 0x3f)
		for shift := 6; b&(0x40|0x80) == 0xc0 || shift > 6 && b&0x80 != 0; shift += 7 {
			if shift > 27 {
				r.Fail(off, format.ErrCorrupt, "the length of a string in Kryo")
				return ""
			}
			b = r.U8()
			if n |= uint64(b&0x7f) << shift; b&0x80 == 0 {
				break
			}
		}
		if r.Err() != nil {
			return ""
		}
		if n == 0 || n-1 > uint64(r.Remaining()) {
			kind := format.ErrTruncated
			if n == 0 {
				kind = format.ErrUnsupported
			}
			r.Fail(off, kind, "a string of %d characters in Kryo, %d bytes left", int64(n)-1, r.Remaining())
			return ""
		}
		units := make([]uint16, n-1)
		for i := range units {
			switch b := r.U8(); {
			case b < 0x80:
				units[i] = uint16(b)
			case b>>5 == 0b110:
				units[i] = uint16(b&0x1f)<<6 | uint16(r.U8()&0x3f)
			default:
				units[i] = uint16(b&0x0f)<<12 | uint16(r.U8()&0x3f)<<6
				units[i] |= uint16(r.U8() & 0x3f)
			}
		}
		s = []byte(java.FromUnits(units))
	}
	if r.Err() != nil {
		return ""
	}
	w := writer{}
	if k.putText(&w, string(s), as); w.err != nil || string(w.p) != string(r.Since(off)) {
		r.other(off, "a string of another encoding")
	}
	return string(s)
}

func (k *kryoState) putText(w *writer, s string, as textEncoding) {
	most := 63
	if k.version == kryo5 {
		most = 32
	}
	few := len(s) <= most || as == textName && !strings.Contains(s, "\x00")
	if len(s) > 1 && few && as != textUnits && plainText(s) {
		w.p = append(w.p, s...)
		w.p[len(w.p)-1] |= 0x80
		return
	}
	units, ok := java.Units(s)
	if !ok || len(units) >= math.MaxInt32 {
		w.fail("a string that is not UTF-8 or too long")
		return
	}
	if n := uint32(len(units)) + 1; n < 0x40 {
		w.p = append(w.p, byte(n)|0x80)
	} else {
		w.p = append(w.p, byte(n&0x3f)|0xc0)
		w.uvarint(n >> 6)
	}
	for _, u := range units {
		switch {
		case u < 0x80:
			w.p = append(w.p, byte(u))
		case u < 0x800:
			w.p = append(w.p, 0xc0|byte(u>>6), 0x80|byte(u&0x3f))
		default:
			w.p = append(w.p, 0xe0|byte(u>>12), 0x80|byte(u>>6&0x3f), 0x80|byte(u&0x3f))
		}
	}
}

func kryoString(int) kryoBody { return kryoText(textValue) }

// kryoText is the codec of strings in an encoding.
func kryoText(as textEncoding) kryoBody {
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value { return value.String(k.text(r, as)) },
		write: func(k *kryoState, w *writer, v value.Value) {
			if w.expects(v, value.KindString) {
				k.putText(w, v.Text(), as)
			}
		},
		parse: func(_ *kryoState, p *parser, n *node) value.Value { return value.String(p.str(n)) },
	}
}

// uuidText returns the text of the 16 bytes of a UUID.
func uuidText(u []byte) string {
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// kryoUUID is the codec of java.util.UUID, which is its text.
func kryoUUID(version int) kryoBody {
	parse := func(s string) (u [16]byte, ok bool) {
		p, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		if copy(u[:], p); err != nil || len(p) != len(u) {
			return u, false
		}
		return u, uuidText(u[:]) == s
	}
	return kryoFunc(false, func(r *reader) value.Value {
		var u [16]byte
		for i := 0; i < 16; i += 8 {
			if version == kryo2 {
				binary.BigEndian.PutUint64(u[i:], uint64(unzigzag(r.varlong())))
			} else if p := r.Bytes(8, "half a UUID"); p != nil {
				binary.BigEndian.PutUint64(u[i:], binary.LittleEndian.Uint64(p))
			}
		}
		return value.String(uuidText(u[:]))
	}, func(w *writer, v value.Value) {
		u, ok := parse(v.Text())
		if !w.expects(v, value.KindString) || !ok {
			w.fail("%q is not a UUID", v.Text())
			return
		}
		for i := 0; i < 16; i += 8 {
			if n := binary.BigEndian.Uint64(u[i:]); version == kryo2 {
				w.varlong(zigzag(int64(n)))
			} else {
				w.p = binary.LittleEndian.AppendUint64(w.p, n)
			}
		}
	}, func(p *parser, n *node) value.Value {
		s := p.str(n)
		if _, ok := parse(s); p.err == nil && !ok {
			p.fail("%q is not a UUID in lower case", s)
		}
		return value.String(s)
	})(version)
}
