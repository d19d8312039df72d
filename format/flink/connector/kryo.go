package connector

import (
	"unicode/utf16"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
)

// kryoStart reads the class id and the mark of a new object. It returns the
// difference of the id to the one that is known.
func (r *reader) kryoStart() (class uint8) {
	off := r.Offset()
	class = r.U8() ^ kryoClass
	if r.Err() == nil && (class^kryoClass)&0x80 != 0 {
		r.Fail(off, format.ErrUnsupported, "a Kryo class id of more than one byte is not decoded")
	}
	r.newObject()
	return class
}

// newObject reads the mark of an object that is not a reference.
func (r *reader) newObject() {
	off := r.Offset()
	if b := r.U8(); r.Err() == nil && b != 1 {
		r.Fail(off, format.ErrUnsupported, "expected a new Kryo object, 01, found %02x", b)
	}
}

// uvarint reads 7 bits per byte, low group first.
func (r *reader) uvarint(bits int) uint64 {
	off := r.Offset()
	var v uint64
	for shift := 0; shift < bits; shift += 7 {
		b := r.U8()
		if r.Err() != nil {
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if bits < 64 && v>>bits != 0 {
				break
			}
			if b == 0 && shift > 0 {
				r.Fail(off, format.ErrUnsupported, "a number with leading zeros, which Kryo does not write")
			}
			return v
		}
		if bits == 64 && shift == 49 { // the ninth byte of a long has 8 bits
			return v | uint64(r.U8())<<56
		}
	}
	r.Fail(off, format.ErrCorrupt, "a number of more than %d bits", bits)
	return 0
}

func (w *writer) uvarint(v uint64, bits int) {
	for n := 0; v >= 0x80; n++ {
		if bits == 64 && n == 8 {
			break
		}
		w.p = append(w.p, byte(v)|0x80)
		v >>= 7
	}
	w.p = append(w.p, byte(v))
}

// zigzag reads a signed number.
func (r *reader) zigzag(bits int) int64 {
	u := r.uvarint(bits)
	return int64(u>>1) ^ -int64(u&1)
}

func (w *writer) zigzag(n int64, bits int) {
	u := uint64(n<<1) ^ uint64(n>>63)
	if bits == 32 {
		u = uint64(uint32(u))
	}
	w.uvarint(u, bits)
}

// kryoString reads a string as Kryo writes it: ASCII of 2 to 63 characters,
// the last with bit 7 set; otherwise a length plus one, of 6 bits in its first byte,
// which has bit 7 set, and then 7 bits per byte, and characters of 1 to 3 bytes.
func (r *reader) kryoString() string {
	off := r.Offset()
	b := r.U8()
	if r.Err() != nil {
		return ""
	}
	if b&0x80 == 0 {
		p := []byte{b}
		for {
			c := r.U8()
			if r.Err() != nil {
				return ""
			}
			p = append(p, c&0x7f)
			if c&0x80 != 0 {
				break
			}
		}
		if len(p) > maxASCII {
			r.Fail(off, format.ErrUnsupported, "an ASCII string of %d characters, which Kryo does not write", len(p))
		}
		return string(p)
	}
	n := uint64(b & 0x3f)
	if b&0x40 != 0 {
		for shift := 6; ; shift += 7 {
			c := r.U8()
			if r.Err() != nil || shift > 27 {
				r.Fail(off, format.ErrCorrupt, "a string length of more than 32 bits")
				return ""
			}
			n |= uint64(c&0x7f) << shift
			if c&0x80 == 0 {
				break
			}
		}
	}
	switch {
	case n == 0:
		r.Fail(off, format.ErrUnsupported, "null in place of a string")
		return ""
	case n-1 > uint64(r.Remaining()):
		r.Fail(off, format.ErrTruncated, "cut short: expected a string of %d characters, %d bytes left", n-1, r.Remaining())
		return ""
	}
	units := make([]uint16, n-1)
	for i := range units {
		units[i] = r.kryoChar()
	}
	s := string(utf16.Decode(units))
	r.mustBeText(off, s)
	return s
}

// maxASCII is the length up to which Kryo 2.24 writes a string as ASCII.
const maxASCII = 63

func (r *reader) kryoChar() uint16 {
	off := r.Offset()
	b := r.U8()
	switch b >> 4 {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		return uint16(b)
	case 12, 13:
		return uint16(b&0x1f)<<6 | uint16(r.U8()&0x3f)
	case 14:
		return uint16(b&0x0f)<<12 | uint16(r.U8()&0x3f)<<6 | uint16(r.U8()&0x3f)
	}
	r.Fail(off, format.ErrCorrupt, "%02x does not start a character", b)
	return 0
}

func (w *writer) kryoString(s string) {
	if !utf8.ValidString(s) {
		w.fail("a string that is not UTF-8")
		return
	}
	units := utf16.Encode([]rune(s))
	ascii := len(units) > 1 && len(units) <= maxASCII
	for _, u := range units {
		ascii = ascii && u < 0x80
	}
	if ascii {
		w.p = append(w.p, s...)
		w.p[len(w.p)-1] |= 0x80
		return
	}
	n := uint64(len(units)) + 1
	if n < 0x40 {
		w.p = append(w.p, 0x80|byte(n))
	} else {
		w.p = append(w.p, 0xc0|byte(n&0x3f))
		for n >>= 6; n >= 0x80; n >>= 7 {
			w.p = append(w.p, 0x80|byte(n))
		}
		w.p = append(w.p, byte(n))
	}
	for _, u := range units {
		switch {
		case u <= 0x7f:
			w.p = append(w.p, byte(u))
		case u > 0x7ff:
			w.p = append(w.p, 0xe0|byte(u>>12), 0x80|byte(u>>6&0x3f), 0x80|byte(u&0x3f))
		default:
			w.p = append(w.p, 0xc0|byte(u>>6), 0x80|byte(u&0x3f))
		}
	}
}
