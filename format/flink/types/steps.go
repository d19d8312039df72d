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
)

var opSize = [...]int{opBool: 1, opByte: 1, opShort: 2, opInt: 4, opLong: 8, opFloat: 4, opDouble: 8}

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

func set(o op, p []byte, v *value.Value) {
	switch o {
	case opBool:
		*v = value.Bool(p[0] != 0)
	case opByte:
		*v = value.Int(int64(int8(p[0])))
	case opShort:
		*v = value.Int(int64(int16(binary.BigEndian.Uint16(p))))
	case opInt:
		*v = value.Int(int64(int32(binary.BigEndian.Uint32(p))))
	case opLong:
		*v = value.Int(int64(binary.BigEndian.Uint64(p)))
	case opFloat:
		*v = value.Float32(binary.BigEndian.Uint32(p))
	case opDouble:
		*v = value.Float64(binary.BigEndian.Uint64(p))
	}
}
