package types

import (
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// varlong reads 8 groups of 7 bits and a ninth byte of 8 bits.
func (r *reader) varlong() uint64 {
	off := r.Offset()
	var v uint64
	for shift := 0; shift < 56; shift += 7 {
		b := r.U8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if b == 0 && shift > 0 {
				r.other(off, "a number with leading zeros")
			}
			return v
		}
	}
	b := r.U8()
	if b == 0 {
		r.other(off, "a number with leading zeros")
	}
	return v | uint64(b)<<56
}

func (w *writer) varlong(n uint64) {
	for range 8 {
		if n < 0x80 {
			w.p = append(w.p, byte(n))
			return
		}
		w.p = append(w.p, byte(n)|0x80)
		n >>= 7
	}
	w.p = append(w.p, byte(n))
}

func zigzag(n int64) uint64     { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64   { return int64(n>>1) ^ -int64(n&1) }
func zigzag32(n int32) uint32   { return uint32(n<<1) ^ uint32(n>>31) }
func unzigzag32(n uint32) int32 { return int32(n>>1) ^ -int32(n&1) }

// kryoScalar is the codec of a class whose objects are written as by c, in the byte
// order of Kryo's version.
func kryoScalar(version int, c scalar, plain bool) kryoBody {
	swap := version == kryo5 && c.size > 1
	return kryoBody{plain: plain,
		read: func(_ *kryoState, r *reader) value.Value {
			if !swap {
				return c.get(r)
			}
			p := slices.Clone(r.Bytes(c.size, "a number"))
			slices.Reverse(p)
			if r.Err() != nil {
				return value.Null()
			}
			return c.get(&reader{Cursor: java.Of(p), arena: r.arena})
		},
		write: func(_ *kryoState, w *writer, v value.Value) {
			at := len(w.p)
			if c.put(w, v); swap {
				slices.Reverse(w.p[at:])
			}
		},
		parse: func(_ *kryoState, p *parser, n *node) value.Value { return c.from(p, n) },
	}
}

// kryoFunc is kryoScalar for codecs that do not depend on the version.
func kryoFunc(plain bool, get func(r *reader) value.Value, put func(w *writer, v value.Value), from func(p *parser, n *node) value.Value) func(int) kryoBody {
	return func(int) kryoBody {
		return kryoBody{plain: plain,
			read:  func(_ *kryoState, r *reader) value.Value { return get(r) },
			write: func(_ *kryoState, w *writer, v value.Value) { put(w, v) },
			parse: func(_ *kryoState, p *parser, n *node) value.Value { return from(p, n) },
		}
	}
}

var (
	kryoInt = scalar{
		get: func(r *reader) value.Value { return value.Int(int64(unzigzag32(r.uvarint()))) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindInt) {
				if v.Int() != int64(int32(v.Int())) {
					w.fail("%d does not fit into 32 bits", v.Int())
				}
				w.uvarint(zigzag32(int32(v.Int())))
			}
		},
		from: intCodec.from,
	}
	kryoLong = scalar{
		get: func(r *reader) value.Value { return value.Int(unzigzag(r.varlong())) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindInt) {
				w.varlong(zigzag(v.Int()))
			}
		},
		from: longCodec.from,
	}
	// kryoBig reads uvarint length, plus one, and two's complement.
	kryoBig = scalar{
		get: func(r *reader) value.Value {
			off := r.Offset()
			n := r.uvarint()
			p := r.Bytes(int(n)-1, "a big integer")
			if r.Err() == nil && len(p) == 0 {
				r.Fail(off, format.ErrCorrupt, "a big integer without a digit")
			}
			r.shortest(off, p)
			return value.BigInt(p)
		},
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindBigInt) {
				w.uvarint(uint32(len(v.Text())) + 1)
				w.p = append(w.p, v.Text()...)
			}
		},
		from: func(p *parser, n *node) value.Value { return value.BigInt(twosComplement(p.bigInteger(n))) },
	}
	kryoDecimal = scalar{
		get: func(r *reader) value.Value {
			digits := kryoBig.get(r).Text()
			return value.Decimal([]byte(digits), unzigzag32(r.uvarint()))
		},
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindDecimal) {
				kryoBig.put(w, value.BigInt([]byte(v.Text())))
				w.uvarint(zigzag32(v.Scale()))
			}
		},
		from: func(p *parser, n *node) value.Value {
			unscaled, scale := p.decimal(n)
			return value.Decimal(twosComplement(unscaled), scale)
		},
	}
	kryoDate = scalar{
		get: func(r *reader) value.Value { return instantOf(int64(r.varlong()), 0) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindInstant) {
				if v.Nano()%1e6 != 0 {
					w.fail("%v is finer than a millisecond", v)
				}
				w.varlong(uint64(w.millis(v)))
			}
		},
		from: func(p *parser, n *node) value.Value { return p.timestamp(n, value.KindInstant) },
	}
)

// kryoTimestamp is the codec of java.sql.Timestamp: ms, which
// are whole seconds in Kryo 5, and nanoseconds of the second.
func kryoTimestamp(version int) kryoBody {
	return kryoFunc(false, func(r *reader) value.Value {
		off := r.Offset()
		ms, nano := int64(r.varlong()), int32(r.uvarint())
		checkNano(r, off, nano)
		sec := floorDiv(ms, 1000)
		part := int64(0)
		if version == kryo2 {
			part = int64(nano / 1e6)
		}
		if r.Err() == nil && ms-sec*1000 != part {
			r.other(off, "a timestamp with two different values of milliseconds")
		}
		return value.Instant(sec, nano)
	}, func(w *writer, v value.Value) {
		if !w.expects(v, value.KindInstant) {
			return
		}
		ms := w.millis(v)
		if version == kryo5 {
			ms = w.millis(value.Instant(v.Int(), 0))
		}
		w.varlong(uint64(ms))
		w.uvarint(uint32(v.Nano()))
	}, kryoDate.from)(version)
}
