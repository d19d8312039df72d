package types

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// The binary rows, arrays and maps of Flink SQL (spec flink-serializers B11). A row
// or array has a fixed part with a slot for each field, and a variable part, to which
// slots refer. All numbers are little-endian.
//
// Flink's writers write fields in their order, without gaps, which is the only layout
// that is read here, because it is the one that is written back. Nulls of types that
// reserve bytes in the variable part have two encodings.

// nullReserved is the variant of a null that reserves bytes.
const nullReserved = value.EncodedNull

// cell is the codec of a field or element.
type cell struct {
	width    int // bytes of an element of an array; in rows every slot has 8
	reserved int // bytes that a null may reserve in the variable part
	// get reads a value. slot has at least width bytes.
	get func(b *parts, slot []byte) value.Value
	// put writes the slot at offset at of w.p, and appends to w.p what does not fit
	// into it. base is the offset of the row or array in w.p.
	put  func(w *writer, base, at int, v value.Value)
	from func(p *parser, n *node) value.Value
	typ  *Type  // of values; nil: see of
	of   layout // of values that are always in the variable part; otherwise nil
}

// parts reads the parts of one row or array in their order.
type parts struct {
	r    *reader
	p    []byte // all of the row or array
	off  int    // its offset in the input
	next int    // where the next part of the variable part starts
	free *parts // see reader.parts
}

// parts returns the reader of the parts of a row or array. The caller must call done.
func (r *reader) parts(p []byte, off, next int) *parts {
	b := r.freeParts
	if b == nil {
		b = new(parts)
	}
	r.freeParts = b.free
	*b = parts{r: r, p: p, off: off, next: next}
	return b
}

func (b *parts) done() {
	r := b.r
	*b = parts{free: r.freeParts}
	r.freeParts = b
}

// other records that Flink does not write such a row or array.
func (b *parts) other(what string) { b.r.other(b.off, what) }

func roundUp(n int) int { return (n + 7) / 8 * 8 }

// take returns the next part of the variable part: length bytes at offset.
func (b *parts) take(length, offset uint32, reserve int) []byte {
	from, n := int(offset), int(length)
	if n > len(b.p)-from || from > len(b.p) {
		b.r.Fail(b.off, format.ErrCorrupt, "a field at %d of %d bytes in a row or array of %d bytes", from, n, len(b.p))
		return nil
	}
	size := reserve
	if reserve == 0 {
		size = roundUp(n)
	}
	switch {
	case from != b.next || n > size || size > len(b.p)-from:
		b.other("a row or array with gaps or with parts in another order")
		return nil
	case !zero(b.p[from+n : from+size]):
		b.other("a row or array with padding that is not zero")
		return nil
	}
	b.next += size
	return b.p[from : from+n]
}

func zero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// null reads the slot of a null.
func (b *parts) null(c *cell, slot []byte) value.Value {
	if zero(slot) {
		return value.Null()
	}
	if n := c.reserved; n > 0 && len(slot) == 8 && binary.LittleEndian.Uint32(slot) == 0 {
		if b.take(0, binary.LittleEndian.Uint32(slot[4:]), n) != nil {
			return value.Null().WithVariant(nullReserved)
		}
		return value.Null()
	}
	b.other("a null with a value")
	return value.Null()
}

// putNull writes a null, whose slot is zero already.
func (w *writer) putNull(c *cell, base, at int, v value.Value) {
	if v.Variant() == nullReserved && c.reserved > 0 {
		w.part(base, at, nil, c.reserved)
	}
}

// part appends bytes to the variable part, and writes where they are into a slot.
func (w *writer) part(base, at int, p []byte, reserve int) {
	offset := len(w.p) - base
	w.p = append(w.p, p...)
	size := reserve
	if reserve == 0 {
		size = roundUp(len(p))
	}
	w.p = append(w.p, make([]byte, size-len(p))...)
	w.refer(base, at, len(p), offset)
}

// refer writes a length and an offset into a slot.
func (w *writer) refer(base, at, length, offset int) {
	if len(w.p)-base > math.MaxInt32 {
		w.fail("a row or array of more than %d bytes", math.MaxInt32)
		return
	}
	binary.LittleEndian.PutUint32(w.p[at:], uint32(length))
	binary.LittleEndian.PutUint32(w.p[at+4:], uint32(offset))
}

// numberCell is a cell of numbers of width bytes. to and of convert them to values
// and back.
func numberCell(width int, to func(bits uint64) value.Value, of func(w *writer, v value.Value) uint64, from func(p *parser, n *node) value.Value) *cell {
	return &cell{width: width,
		get: func(b *parts, slot []byte) value.Value {
			if !zero(slot[width:]) {
				b.other("a small field with more bytes than its type has")
			}
			var bits [8]byte
			copy(bits[:], slot[:width])
			return to(binary.LittleEndian.Uint64(bits[:]))
		},
		put: func(w *writer, _, at int, v value.Value) {
			var bits [8]byte
			binary.LittleEndian.PutUint64(bits[:], of(w, v))
			copy(w.p[at:at+width], bits[:])
		},
		from: from,
	}
}

// integerCell is a cell of integers.
func integerCell(width int) *cell {
	shift := 64 - 8*width
	return numberCell(width,
		func(bits uint64) value.Value { return value.Int(int64(bits<<shift) >> shift) },
		func(w *writer, v value.Value) uint64 {
			n := v.Int()
			if w.expects(v, value.KindInt) && n<<shift>>shift != n {
				w.fail("%d does not fit into %d bits", n, 8*width)
			}
			return uint64(n)
		},
		func(p *parser, n *node) value.Value { return value.Int(p.integer(n, width)) })
}

// bytesCell is a cell of strings or byte arrays, which are in the slot if they have at
// most 7 bytes.
func bytesCell(kind value.Kind) *cell {
	return &cell{width: 8,
		get: func(b *parts, slot []byte) value.Value {
			var p []byte
			if slot[7]&0x80 != 0 {
				n := int(slot[7] & 0x7f)
				if n > 7 || !zero(slot[n:7]) {
					b.other("a short string or byte array with bytes after its end")
					return value.Null()
				}
				p = slot[:n]
			} else if p = b.long(slot); len(p) < 8 {
				b.other("a short string or byte array that is not in its slot")
				return value.Null()
			}
			if kind == value.KindBytes {
				return value.BytesOf(b.r.arena.Text(p))
			}
			if !utf8.Valid(p) {
				b.r.Fail(b.off, format.ErrUnsupported, "a string that is not UTF-8")
			}
			return value.String(b.r.arena.Text(p))
		},
		put: func(w *writer, base, at int, v value.Value) {
			if !w.expects(v, kind) {
				return
			}
			s := v.Text()
			if kind == value.KindString && !utf8.ValidString(s) {
				w.fail("the string %q is not UTF-8", s)
			}
			if len(s) < 8 {
				copy(w.p[at:], s)
				w.p[at+7] = 0x80 | byte(len(s))
				return
			}
			w.part(base, at, []byte(s), 0)
		},
		from: map[value.Kind]func(p *parser, n *node) value.Value{value.KindString: stringDataCodec.from, value.KindBytes: bytesCodec.from}[kind],
	}
}

// long returns the part that a slot refers to.
func (b *parts) long(slot []byte) []byte {
	return b.take(binary.LittleEndian.Uint32(slot), binary.LittleEndian.Uint32(slot[4:]), 0)
}

// decimalCell is a cell of decimals: the unscaled number, or 16 bytes of the variable
// part.
func decimalCell(precision, scale int32) *cell {
	from := func(p *parser, n *node) value.Value { return p.sqlDecimal(n, precision, scale) }
	if precision <= 18 {
		c := numberCell(8, nil, func(w *writer, v value.Value) uint64 {
			if !w.decimal(v, precision, scale) {
				return 0
			}
			return uint64(v.BigInt().Int64())
		}, from)
		c.get = func(b *parts, slot []byte) value.Value {
			return b.r.smallDecimal(b.off, int64(binary.LittleEndian.Uint64(slot)), precision, scale)
		}
		return c
	}
	const size = 16
	return &cell{width: 8, reserved: size, from: from,
		get: func(b *parts, slot []byte) value.Value {
			p := b.take(binary.LittleEndian.Uint32(slot), binary.LittleEndian.Uint32(slot[4:]), size)
			if b.r.Err() == nil && len(p) == 0 {
				b.r.Fail(b.off, format.ErrCorrupt, "a decimal without a digit")
			}
			return b.r.wideDecimal(b.off, p, precision, scale)
		},
		put: func(w *writer, base, at int, v value.Value) {
			if !w.decimal(v, precision, scale) {
				return
			}
			w.part(base, at, []byte(v.Text()), size)
		},
	}
}

// timestampCell is a cell of timestamps: ms, or from precision 4 on nanoseconds of the
// millisecond, and ms in the variable part.
func timestampCell(precision int32, kind value.Kind) *cell {
	from := func(p *parser, n *node) value.Value { return p.timestamp(n, kind) }
	if precision <= 3 {
		return numberCell(8,
			func(bits uint64) value.Value { return timestampOf(kind, int64(bits), 0) },
			func(w *writer, v value.Value) uint64 {
				if !w.expects(v, kind) {
					return 0
				}
				ms, nano := w.timestampMillis(v)
				if nano != 0 {
					w.fail("%v is finer than a millisecond", v)
				}
				return uint64(ms)
			}, from)
	}
	const size = 8
	return &cell{width: 8, reserved: size, from: from,
		get: func(b *parts, slot []byte) value.Value {
			nano := binary.LittleEndian.Uint32(slot)
			p := b.take(size, binary.LittleEndian.Uint32(slot[4:]), size)
			if p == nil {
				return value.Null()
			}
			if nano > 999_999 {
				b.r.Fail(b.off, format.ErrCorrupt, "invalid nanoseconds %d of a millisecond", nano)
				return value.Null()
			}
			return timestampOf(kind, int64(binary.LittleEndian.Uint64(p)), int32(nano))
		},
		put: func(w *writer, base, at int, v value.Value) {
			if !w.expects(v, kind) {
				return
			}
			ms, nano := w.timestampMillis(v)
			w.part(base, at, binary.LittleEndian.AppendUint64(nil, uint64(ms)), size)
			binary.LittleEndian.PutUint32(w.p[at:], uint32(nano))
		},
	}
}

// layout reads and writes what is in a part: a row, an array, a map, a raw value.
type layout interface {
	read(r *reader, p []byte, off int) value.Value
	write(w *writer, v value.Value)
	parse(p *parser, n *node) value.Value
	describe(d *describer) *Type
}

// layoutCell is a cell of values that are always in the variable part.
func layoutCell(l layout) *cell {
	return &cell{width: 8, from: l.parse, of: l,
		get: func(b *parts, slot []byte) value.Value {
			length, offset := binary.LittleEndian.Uint32(slot), binary.LittleEndian.Uint32(slot[4:])
			p := b.take(length, offset, 0)
			if b.r.Err() != nil {
				return value.Null()
			}
			return l.read(b.r, p, b.off+int(offset))
		},
		put: func(w *writer, base, at int, v value.Value) {
			from := len(w.p)
			l.write(w, v)
			n := len(w.p) - from
			w.p = append(w.p, make([]byte, roundUp(n)-n)...)
			w.refer(base, at, n, from-base)
		},
	}
}

// cellOf returns the cell of a SQL type, or nil.
func cellOf(m *maker, t *logical) *cell {
	c := newCell(m, t)
	if c != nil && c.of == nil {
		c.typ = t.typeOf()
	}
	return c
}

func newCell(m *maker, t *logical) *cell {
	switch t.class {
	case "BooleanType":
		c := numberCell(1, func(bits uint64) value.Value { return value.Bool(bits != 0) }, func(w *writer, v value.Value) uint64 {
			w.expects(v, value.KindBool)
			return uint64(v.Int())
		}, boolCodec.from)
		get := c.get
		c.get = func(b *parts, slot []byte) value.Value {
			if slot[0] > 1 {
				b.other("a boolean that is neither 0 nor 1")
			}
			return get(b, slot)
		}
		return c
	case "TinyIntType":
		return integerCell(1)
	case "SmallIntType":
		return integerCell(2)
	case "IntType", "YearMonthIntervalType":
		return integerCell(4)
	case "BigIntType", "DayTimeIntervalType":
		return integerCell(8)
	case "FloatType":
		return numberCell(4, func(bits uint64) value.Value { return value.Float32(uint32(bits)) }, func(w *writer, v value.Value) uint64 {
			w.expects(v, value.KindFloat32)
			return uint64(v.Int())
		}, floatCodec.from)
	case "DoubleType":
		return numberCell(8, value.Float64, func(w *writer, v value.Value) uint64 {
			w.expects(v, value.KindFloat64)
			return uint64(v.Int())
		}, doubleCodec.from)
	case "DateType":
		return numberCell(4, func(bits uint64) value.Value { return dateOfDays(int64(int32(bits))) }, func(w *writer, v value.Value) uint64 {
			w.expects(v, value.KindDate)
			n := daysOf(v)
			if n != int64(int32(n)) {
				w.fail("%v is too far from 1970", v)
			}
			return uint64(n)
		}, func(p *parser, n *node) value.Value { return p.timestamp(n, value.KindDate) })
	case "TimeType":
		number := integerCell(4)
		return numberCell(4, func(bits uint64) value.Value { return timeOfDay(int64(int32(bits)), 1e6) }, func(w *writer, v value.Value) uint64 {
			if v.Kind() == value.KindInt {
				return uint64(v.Int())
			}
			n, ok := unitsOfDay(v, 1e6)
			if w.expects(v, value.KindTimeOfDay) && !ok {
				w.fail("%v is finer than a millisecond", v)
			}
			return uint64(n)
		}, func(p *parser, n *node) value.Value {
			if n.Kind == jsonNumber {
				return number.from(p, n)
			}
			return p.timestamp(n, value.KindTimeOfDay)
		})
	case "CharType", "VarCharType":
		return bytesCell(value.KindString)
	case "BinaryType", "VarBinaryType":
		return bytesCell(value.KindBytes)
	case "DecimalType":
		return decimalCell(t.precision, t.scale)
	case "TimestampType":
		return timestampCell(t.precision, value.KindDateTime)
	case "LocalZonedTimestampType":
		return timestampCell(t.precision, value.KindInstant)
	case "NullType":
		return &cell{width: 8, get: func(b *parts, _ []byte) value.Value {
			b.other("a value of the type of null")
			return value.Null()
		}, put: func(w *writer, _, _ int, v value.Value) { w.expects(v, value.KindNull) }, from: nothing{}.parse}
	}
	if l := layoutOf(m, t); l != nil {
		return layoutCell(l)
	}
	return nil
}

// layoutOf returns the layout of a SQL type with parts, or nil.
func layoutOf(m *maker, t *logical) layout {
	switch t.class {
	case "ArrayType":
		if c := cellOf(m, t.parts[0]); c != nil {
			return binaryArray{c}
		}
	case "MultisetType":
		if c := cellOf(m, t.parts[0]); c != nil {
			return binaryMap{binaryArray{c}, binaryArray{integerCell(4)}}
		}
	case "MapType":
		if k, v := cellOf(m, t.parts[0]), cellOf(m, t.parts[1]); k != nil && v != nil {
			return binaryMap{binaryArray{k}, binaryArray{v}}
		}
	case "RowType", "StructuredType":
		return rowLayout(m, t.names, t.parts)
	case "RawType", "TypeInformationRawType":
		why := m.why // bytes if the serializer is not known
		c := javaSerializer(m, nil, t.raw)
		if m.why = why; c != nil {
			return rawValue{c}
		}
		return rawBytes{}
	}
	return nil
}

// rowLayout returns the layout of rows, or nil. names is nil if they are not recorded.
func rowLayout(m *maker, names []string, types []*logical) layout {
	row := binaryRow{}
	if names != nil && !hasDuplicates(names) {
		row.shape = &value.Shape{Names: names}
	}
	for _, t := range types {
		if t == nil {
			return nil
		}
		c := cellOf(m, t)
		if c == nil {
			return nil
		}
		row.fields = append(row.fields, c)
	}
	return row
}

// binaryRow is the layout of rows:
//
//	byte  kind, then a null bit for each field, in units of 8 bytes; bits count from
//	      the lowest bit of the first byte, the first field has bit 8
//	8 bytes for each field
//	variable part
type binaryRow struct {
	shape  *value.Shape // names of the fields, or nil
	fields []*cell
}

func (l binaryRow) head() int { return (len(l.fields) + 8 + 63) / 64 * 8 }

func (l binaryRow) read(r *reader, p []byte, off int) value.Value {
	n := len(l.fields)
	head := l.head()
	fixed := head + 8*n
	if len(p) < fixed {
		r.Fail(off, format.ErrCorrupt, "a row of %d fields with %d bytes", n, len(p))
		return value.Null()
	}
	b := r.parts(p, off, fixed)
	defer b.done()
	if p[0] >= byte(len(rowKinds)) {
		r.Fail(off, format.ErrCorrupt, "unknown kind %d of a row", p[0])
		return value.Null()
	}
	for i := n + 8; i < 8*head; i++ {
		if p[i/8]>>(i%8)&1 != 0 {
			b.other("a row with more null bits than fields")
			return value.Null()
		}
	}
	all := r.arena.Values(n)
	for i, c := range l.fields {
		slot := p[head+8*i : head+8*i+8]
		if k := i + 8; p[k/8]>>(k%8)&1 != 0 {
			all[i] = b.null(c, slot)
		} else {
			all[i] = r.present(c.get(b, slot))
		}
		if r.Err() != nil {
			return value.Null()
		}
	}
	b.end()
	if l.shape != nil {
		return withKind(int(p[0]), value.Record(l.shape, all))
	}
	return withKind(int(p[0]), value.List(all))
}

// end checks that nothing follows the last part.
func (b *parts) end() {
	if b.r.Err() == nil && b.next != len(b.p) {
		b.other("a row or array with bytes after its parts")
	}
}

func (l binaryRow) write(w *writer, v value.Value) {
	kind, v := w.kindOf(v)
	if l.shape != nil {
		if !w.fields(v, l.shape) {
			return
		}
	} else if !w.expects(v, value.KindList) || !w.parts(v, len(l.fields)) {
		return
	}
	base, head := len(w.p), l.head()
	w.p = append(w.p, make([]byte, head+8*len(l.fields))...)
	w.p[base] = byte(kind)
	for i, c := range l.fields {
		f, at := v.At(i), base+head+8*i
		if f, null := absent(f); !null {
			c.put(w, base, at, f)
		} else {
			w.p[base+(i+8)/8] |= 1 << ((i + 8) % 8)
			w.putNull(c, base, at, f)
		}
	}
}

func (l binaryRow) parse(p *parser, n *node) value.Value {
	return p.kinded(n, func(n *node) value.Value {
		if l.shape == nil {
			return tupleOf(cellCodecs(l.fields)...).parse(p, n)
		}
		return record{l.shape, tupleOf(cellCodecs(l.fields)...)}.parse(p, n)
	})
}

// cellCodecs returns codecs that only parse JSON.
func cellCodecs(cells []*cell) []codec {
	all := make([]codec, len(cells))
	for i, c := range cells {
		all[i] = nullIf{1, scalar{from: c.from}}
	}
	return all
}

// binaryArray is the layout of arrays:
//
//	int   number of elements, then a null bit for each, in units of 4 bytes
//	      elements, each of the width of its type; zeros up to a multiple of 8
//	      variable part
type binaryArray struct{ one *cell }

// fixed returns the sizes of the head and of the fixed part.
func (l binaryArray) fixed(n int) (head, fixed int) {
	head = 4 + (n+31)/32*4
	return head, roundUp(head + n*l.one.width)
}

func (l binaryArray) elements(r *reader, p []byte, off int) []value.Value {
	if len(p) < 4 {
		r.Fail(off, format.ErrCorrupt, "an array of %d bytes", len(p))
		return nil
	}
	n := int(int32(binary.LittleEndian.Uint32(p)))
	if n < 0 || n > len(p) {
		r.Fail(off, format.ErrCorrupt, "%d elements in an array of %d bytes", n, len(p))
		return nil
	}
	head, fixed := l.fixed(n)
	if len(p) < fixed {
		r.Fail(off, format.ErrCorrupt, "%d elements in an array of %d bytes", n, len(p))
		return nil
	}
	b := r.parts(p, off, fixed)
	defer b.done()
	for i := n; i < 8*(head-4); i++ {
		if p[4+i/8]>>(i%8)&1 != 0 {
			b.other("an array with more null bits than elements")
			return nil
		}
	}
	if !zero(p[head+n*l.one.width : fixed]) {
		b.other("an array with padding that is not zero")
		return nil
	}
	all := r.arena.Values(n)
	for i := range all {
		at := head + i*l.one.width
		slot := p[at : at+l.one.width]
		if p[4+i/8]>>(i%8)&1 != 0 {
			all[i] = b.null(l.one, slot)
		} else {
			all[i] = r.present(l.one.get(b, slot))
		}
		if r.Err() != nil {
			return nil
		}
	}
	b.end()
	return all
}

func (l binaryArray) read(r *reader, p []byte, off int) value.Value {
	return value.List(l.elements(r, p, off))
}

func (l binaryArray) write(w *writer, v value.Value) {
	if w.expects(v, value.KindList) {
		l.writeElements(w, v.Len(), v.At)
	}
}

func (l binaryArray) writeElements(w *writer, n int, at func(int) value.Value) {
	base := len(w.p)
	head, fixed := l.fixed(n)
	w.p = append(w.p, make([]byte, fixed)...)
	binary.LittleEndian.PutUint32(w.p[base:], uint32(n))
	for i := range n {
		slot := base + head + i*l.one.width
		if v, null := absent(at(i)); !null {
			l.one.put(w, base, slot, v)
		} else {
			w.p[base+4+i/8] |= 1 << (i % 8)
			w.putNull(l.one, base, slot, v)
		}
	}
}

func (l binaryArray) parse(p *parser, n *node) value.Value {
	return value.List(p.list(n, cellCodecs([]*cell{l.one})[0]))
}

// binaryMap is the layout of maps: int size of the array of keys, that array, and the
// array of values.
type binaryMap struct{ keys, values binaryArray }

func (l binaryMap) read(r *reader, p []byte, off int) value.Value {
	if len(p) < 4 {
		r.Fail(off, format.ErrCorrupt, "a map of %d bytes", len(p))
		return value.Null()
	}
	n := int(int32(binary.LittleEndian.Uint32(p)))
	if n < 0 || n > len(p)-4 {
		r.Fail(off, format.ErrCorrupt, "keys of %d bytes in a map of %d bytes", n, len(p))
		return value.Null()
	}
	keys := l.keys.elements(r, p[4:4+n], off+4)
	values := l.values.elements(r, p[4+n:], off+4+n)
	if r.Err() == nil && len(keys) != len(values) {
		r.Fail(off, format.ErrCorrupt, "%d keys and %d values of a map", len(keys), len(values))
	}
	if r.Err() != nil {
		return value.Null()
	}
	pairs := r.arena.Values(2 * len(keys))
	for i := range keys {
		pairs[2*i], pairs[2*i+1] = keys[i], values[i]
	}
	return value.Map(pairs)
}

func (l binaryMap) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindMap) {
		return
	}
	base := len(w.p)
	w.p = append(w.p, 0, 0, 0, 0)
	l.keys.writeElements(w, v.Len(), v.Key)
	binary.LittleEndian.PutUint32(w.p[base:], uint32(len(w.p)-base-4))
	l.values.writeElements(w, v.Len(), v.At)
}

func (l binaryMap) parse(p *parser, n *node) value.Value {
	all := cellCodecs([]*cell{l.keys.one, l.values.one})
	return value.Map(p.pairs(n, all[0], all[1]))
}

// rawValue is the layout of a value by its own serializer.
type rawValue struct{ one codec }

func (l rawValue) read(r *reader, p []byte, off int) value.Value { return r.within(p, off, l.one) }
func (l rawValue) write(w *writer, v value.Value)                { l.one.write(w, v) }
func (l rawValue) parse(p *parser, n *node) value.Value          { return l.one.parse(p, n) }

// rawBytes is the layout of a value whose serializer is not known.
type rawBytes struct{}

func (rawBytes) read(r *reader, p []byte, _ int) value.Value { return value.Bytes(p) }

func (rawBytes) write(w *writer, v value.Value) {
	if w.expects(v, value.KindBytes) {
		w.p = append(w.p, v.Text()...)
	}
}

func (rawBytes) parse(p *parser, n *node) value.Value { return value.Bytes(p.bytes(n)) }

// framedLayout reads int size, big-endian, and a row, an array or a map.
type framedLayout struct{ of layout }

func (f framedLayout) skip(r *reader) { r.Blob("a row, an array or a map") }

func (f framedLayout) read(r *reader) value.Value {
	off := r.Offset() + 4
	p := r.Blob("a row, an array or a map")
	if r.Err() != nil {
		return value.Null()
	}
	return f.of.read(r, p, off)
}

func (f framedLayout) write(w *writer, v value.Value) {
	at := len(w.p)
	w.int(0, 4)
	f.of.write(w, v)
	w.setLength(at)
}

func (f framedLayout) parse(p *parser, n *node) value.Value { return f.of.parse(p, n) }

// sqlOf returns the codec of a snapshot that contains serialized SQL types.
func sqlOf(m *maker, s *Snapshot, make func(types []*logical) layout) codec {
	types := s.sql
	for _, p := range s.objects {
		if t := logicalOf(p); t != nil {
			types = append(types, t)
		}
	}
	if l := make(types); l != nil {
		return framedLayout{l}
	}
	return m.fail(s, SQLType)
}

// SQLType is the reason for SQL types whose layout is not known.
const SQLType Reason = "a SQL type whose layout is not known"

func rowDataOf(m *maker, s *Snapshot, _ []codec) codec {
	return sqlOf(m, s, func(types []*logical) layout {
		if len(types) != max(len(s.objects), len(s.sql)) {
			return nil
		}
		return rowLayout(m, s.Names, types)
	})
}

func arrayDataOf(m *maker, s *Snapshot, _ []codec) codec {
	return sqlOf(m, s, func(types []*logical) layout {
		if len(types) != 1 {
			return nil
		}
		return layoutOf(m, &logical{class: "ArrayType", parts: types})
	})
}

func mapDataOf(m *maker, s *Snapshot, _ []codec) codec {
	return sqlOf(m, s, func(types []*logical) layout {
		if len(types) != 2 {
			return nil
		}
		return layoutOf(m, &logical{class: "MapType", parts: types})
	})
}
