package types

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format/value"
)

// op is a primitive that is read without calling its codec: composites of many
// primitives spend most of their time in calls.
type op uint8

const (
	_ op = iota
	opBool
	opByte
	opShort
	opInt
	opLong
	opFloat
	opDouble
	opText // a string of characters below 0x80 that is not null
)

// opSize are the sizes of primitives; 0 if they differ.
var opSize = [...]int{opBool: 1, opByte: 1, opShort: 2, opInt: 4, opLong: 8, opFloat: 4, opDouble: 8, opText: 0}

// step is one field of a composite.
type step struct {
	op    op // 0: call the codec
	codec codec
}

func stepsOf(fields []codec) []step {
	all := make([]step, len(fields))
	for i, f := range fields {
		all[i].codec = f
		if s, ok := f.(scalar); ok {
			all[i].op = s.op
		}
	}
	return all
}

// quick reads a primitive. It reads nothing and returns false if the bytes end or are
// not valid, which the codec then reports.
func (r *reader) quick(o op, v *value.Value) bool {
	if o == opText {
		return r.quickText(v)
	}
	p := r.Next(opSize[o])
	if p == nil {
		return false
	}
	if o == opBool && p[0] > 1 {
		r.Back(1)
		return false
	}
	set(o, p, v)
	return true
}

// quickPresent reads a null flag that is 0 and a primitive.
func (r *reader) quickPresent(o op, v *value.Value) bool {
	if o == opText {
		p := r.Next(1)
		if p == nil {
			return false
		}
		if p[0] == 0 && r.quickText(v) {
			return true
		}
		r.Back(1)
		return false
	}
	n := 1 + opSize[o]
	p := r.Next(n)
	if p == nil {
		return false
	}
	if p[0] != 0 || o == opBool && p[1] > 1 {
		r.Back(n)
		return false
	}
	set(o, p[1:], v)
	return true
}

// quickText reads a string with its length, plus one, in one byte.
func (r *reader) quickText(v *value.Value) bool {
	p := r.Next(1)
	if p == nil {
		return false
	}
	if n := int(p[0]); n > 0 && n < 0x80 {
		if q := r.Next(n - 1); q != nil {
			if notASCII(q) == len(q) {
				*v = value.String(r.arena.Text(q))
				return true
			}
			r.Back(len(q))
		}
	}
	r.Back(1)
	return false
}

// length returns the length of the primitive at the start of p. It returns 0 if it is not
// one, or the bytes end or are not valid, which the codec then reports.
func (o op) length(p []byte) (n int) {
	switch {
	case o == 0 || len(p) == 0:
		return 0
	case o != opText:
		if n = opSize[o]; n > len(p) || o == opBool && p[0] > 1 {
			return 0
		}
		return n
	case p[0] < 0x80:
		n = int(p[0])
	case len(p) > 1 && p[1] > 0 && p[1] < 0x80:
		n = int(p[0]&0x7f) + int(p[1])<<7 + 1
	}
	if n == 0 || n > len(p) {
		return 0
	}
	if q := text(p[:n]); notASCII(q) < len(q) {
		return 0
	}
	return n
}

// text returns the characters of a string whose length is in its first byte or two.
func text(p []byte) []byte {
	if p[0] < 0x80 {
		return p[1:]
	}
	return p[2:]
}

// quick appends a primitive, after a null flag of 0 if flag is set. It appends nothing
// and returns false if v is not one of the type, which the codec then reports.
func (w *writer) quick(o op, v value.Value, flag bool) bool {
	n := v.Int()
	k := v.Kind()
	switch o {
	case opBool:
		if k != value.KindBool {
			return false
		}
	case opByte, opShort, opInt, opLong:
		shift := 64 - 8*opSize[o]
		if k != value.KindInt || n<<shift>>shift != n {
			return false
		}
	case opFloat:
		if k != value.KindFloat32 {
			return false
		}
	case opDouble:
		if k != value.KindFloat64 {
			return false
		}
	default:
		return false
	}
	if flag {
		w.p = append(w.p, 0)
	}
	switch opSize[o] {
	case 1:
		w.p = append(w.p, byte(n))
	case 2:
		w.p = binary.BigEndian.AppendUint16(w.p, uint16(n))
	case 4:
		w.p = binary.BigEndian.AppendUint32(w.p, uint32(n))
	case 8:
		w.p = binary.BigEndian.AppendUint64(w.p, uint64(n))
	}
	return true
}

// set sets a null to a primitive.
func set(o op, p []byte, v *value.Value) {
	switch o {
	case opBool:
		v.SetBool(p[0] != 0)
	case opByte:
		v.SetInt(int64(int8(p[0])))
	case opShort:
		v.SetInt(int64(int16(binary.BigEndian.Uint16(p))))
	case opInt:
		v.SetInt(int64(int32(binary.BigEndian.Uint32(p))))
	case opLong:
		v.SetInt(int64(binary.BigEndian.Uint64(p)))
	case opFloat:
		v.SetFloat(value.KindFloat32, uint64(binary.BigEndian.Uint32(p)))
	case opDouble:
		v.SetFloat(value.KindFloat64, binary.BigEndian.Uint64(p))
	}
}
