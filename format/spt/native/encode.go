package native

import (
	"encoding/binary"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/format/value"
)

// Append implements [value.Codec].
func (ValueCodec) Append(dst []byte, v value.Value) ([]byte, error) {
	out, err := appendValue(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

func appendValue(dst []byte, v value.Value, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, format.Errorf(format.ErrLimit, "a value nested more than %d deep", maxDepth)
	}
	code := v.Variant()
	switch v.Kind() {
	case value.KindNull:
		return append(dst, msg.Nil), nil
	case value.KindBool:
		return msg.AppendBool(dst, v.Bool()), nil
	case value.KindInt:
		return appendInt(dst, v.Int(), code), nil
	case value.KindUint:
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), v.Uint()), nil
	case value.KindFloat32:
		return binary.BigEndian.AppendUint32(append(dst, 0xca), uint32(v.Int())), nil
	case value.KindFloat64:
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), v.Uint()), nil
	case value.KindString:
		return appendText(dst, v.Text(), code, stringCode(len(v.Text())))
	case value.KindBytes:
		return appendText(dst, v.Text(), code, binaryCode(len(v.Text())))
	case value.KindInstant:
		return appendInstant(dst, v), nil
	case value.KindRecord:
		if code >= 0xc7 && code <= 0xd8 && code != 0xca {
			return appendExtension(dst, v, code)
		}
		return appendParts(appendCount(dst, v.Len(), code, mapCode(v.Len())), v, depth)
	case value.KindMap:
		return appendParts(appendCount(dst, v.Len(), code, mapCode(v.Len())), v, depth)
	case value.KindList:
		return appendParts(appendCount(dst, v.Len(), code, arrayCode(v.Len())), v, depth)
	}
	return dst, format.Errorf(format.ErrUnsupported, "msgpack cannot represent %v", v.Kind())
}

// appendInt appends n with the first byte code if n fits, otherwise in the shortest
// encoding.
func appendInt(dst []byte, n int64, code byte) []byte {
	if code >= 0xcc && code <= 0xd3 {
		size := 1 << (code & 3)
		shift := 64 - 8*size
		if fits := n<<shift>>shift == n; code >= 0xd0 && fits || code < 0xd0 && n >= 0 && (size == 8 || n < 1<<(8*size)) {
			var b [8]byte
			binary.BigEndian.PutUint64(b[:], uint64(n))
			return append(append(dst, code), b[8-size:]...)
		}
	}
	return msg.AppendInt(dst, n)
}

// appendText appends a string or binary with the first byte code, or best if code
// is 0 or its length field is too small.
func appendText(dst []byte, s string, code, best byte) ([]byte, error) {
	if int64(len(s)) > math.MaxUint32 {
		return dst, format.Errorf(format.ErrUnsupported, "%d bytes: msgpack allows up to %d", len(s), int64(math.MaxUint32))
	}
	if code&0xe0 == 0xa0 && len(s) < 1<<5 {
		return append(append(dst, 0xa0|byte(len(s))), s...), nil
	}
	var width int
	for _, c := range [...]byte{code, best} {
		switch {
		case msg.IsBinary(c):
			width = 1 << (c - 0xc4)
		case msg.IsString(c) && c >= 0xd9:
			width = 1 << (c - 0xd9)
		case c == best: // a short string
			return append(append(dst, c), s...), nil
		default:
			continue
		}
		if width == 8 || int64(len(s)) < 1<<(8*width) {
			return append(appendLength(append(dst, c), len(s), width), s...), nil
		}
	}
	return dst, format.Errorf(format.ErrUnsupported, "a string of %d bytes", len(s)) // unreachable: the length fits best
}

// appendLength appends the low width bytes of n.
func appendLength(dst []byte, n, width int) []byte {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	return append(dst, b[4-width:]...)
}

// appendCount appends the head of an array or a map of n parts, whose shortest
// encoding starts with best.
func appendCount(dst []byte, n int, code, best byte) []byte {
	isList := isArray(best)
	if code >= 0xdc && isArray(code) == isList {
		width := 2 << (code & 1)
		if width == 4 || n < 1<<16 {
			return appendLength(append(dst, code), n, width)
		}
	}
	if isList {
		return msg.AppendArray(dst, n)
	}
	return msg.AppendMap(dst, n)
}

func appendParts(dst []byte, v value.Value, depth int) (_ []byte, err error) {
	for i := range v.Len() {
		switch v.Kind() {
		case value.KindMap:
			dst, err = appendValue(dst, v.Key(i), depth+1)
		case value.KindRecord:
			code := uint8(0)
			if s := v.Shape(); s.Variants != nil {
				code = s.Variants[i]
			}
			dst, err = appendText(dst, v.Name(i), code, stringCode(len(v.Name(i))))
		}
		if err != nil {
			return dst, err
		}
		if dst, err = appendValue(dst, v.At(i), depth+1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendExtension appends a record of type and data as an extension.
func appendExtension(dst []byte, v value.Value, code byte) ([]byte, error) {
	kind, ok := v.Field("type")
	data, has := v.Field("data")
	if n := kind.Int(); !ok || !has || v.Len() != 2 || kind.Kind() != value.KindInt || n < math.MinInt8 || n > math.MaxInt8 || data.Kind() != value.KindBytes {
		return dst, format.Errorf(format.ErrUnsupported, `expected the fields "type" and "data" of an extension`)
	}
	return appendExt(dst, code, int8(kind.Int()), data.Text())
}

// appendExt appends an extension with the first byte code, or with another one if
// the length field of code is too small.
func appendExt(dst []byte, code byte, kind int8, data string) ([]byte, error) {
	n := len(data)
	if int64(n) > math.MaxUint32 {
		return dst, format.Errorf(format.ErrUnsupported, "%d bytes: msgpack allows up to %d", n, int64(math.MaxUint32))
	}
	if code >= 0xd4 && n == 1<<(code-0xd4) {
		dst = append(dst, code, byte(kind))
		return append(dst, data...), nil
	}
	if code = max(code, sized(n, 0xc7)); code > 0xc9 {
		code = sized(n, 0xc7)
	}
	dst = appendLength(append(dst, code), n, 1<<(code-0xc7))
	return append(append(dst, byte(kind)), data...), nil
}

// The variants of timestamps that are not in the shortest encoding are the first
// byte if it implies the length (0xd6, 0xd7), otherwise 1 to 9: for each of the
// first bytes 0xc7 to 0xc9, a length of 4, 8 or 12.

func timestampVariant(code byte, data []byte, v value.Value) uint8 {
	if c, shortest := shortTimestamp(v); c == code && shortest == len(data) {
		return 0
	}
	if code >= 0xd4 {
		return code
	}
	return (code-0xc7)*3 + byte(len(data)/4)
}

// shortTimestamp returns the first byte and the length of the data of the shortest
// encoding.
func shortTimestamp(v value.Value) (code byte, n int) {
	switch sec := v.Int(); {
	case sec < 0 || sec >= 1<<34:
		return 0xc7, 12
	case sec < 1<<32 && v.Nano() == 0:
		return 0xd6, 4
	}
	return 0xd7, 8
}

func appendInstant(dst []byte, v value.Value) []byte {
	code, n := shortTimestamp(v)
	switch c := v.Variant(); {
	case c == 0xd6 && n <= 4, c == 0xd7 && n <= 8:
		code, n = c, 4<<(c-0xd6)
	case c >= 1 && c <= 9 && n <= 4*int((c-1)%3+1):
		code, n = 0xc7+(c-1)/3, 4*int((c-1)%3+1)
	}
	var data []byte
	switch sec := v.Int(); n {
	case 4:
		data = binary.BigEndian.AppendUint32(nil, uint32(sec))
	case 8:
		data = binary.BigEndian.AppendUint64(nil, uint64(v.Nano())<<34|uint64(sec))
	default:
		data = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(v.Nano())), uint64(sec))
	}
	out, _ := appendExt(dst, code, -1, string(data)) // only large data is an error
	return out
}
