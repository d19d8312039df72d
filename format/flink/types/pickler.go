package types

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format/value"
)

// pickler writes values as the pickler of CPython does.
type pickler struct {
	*writer
	pickleMemo
	codec   pickleCodec
	proto   uint8
	framing bool
	frame   int // offset of the header of the frame; -1 outside of one
}

// Frames have a header, and end before the object after this number of bytes. Texts of
// that size are not in a frame, and contents below the least size have none.
const (
	frameHeader = 9
	frameTarget = 64 << 10
	frameLeast  = 4
)

// pickleBatch is the number of parts that one operation adds to an object.
const pickleBatch = 1000

// newPickler returns a pickler for the protocol of a variant of a value.
func newPickler(w *writer, c pickleCodec, variant uint8) *pickler {
	k := &pickler{writer: w, codec: c, proto: preferredPickle, frame: -1}
	if variant >= minPickle && variant <= maxPickle {
		k.proto = variant
	}
	return k
}

func (k *pickler) dump(v value.Value) {
	k.p = append(k.p, 0x80, k.proto)
	k.framing = k.proto >= 4
	k.save(v.WithVariant(0))
	k.emit(pickleStop)
	k.endFrame()
}

func (k *pickler) emit(p ...byte) {
	if k.framing && k.frame < 0 {
		k.frame = len(k.p)
		k.p = append(k.p, make([]byte, frameHeader)...)
	}
	k.p = append(k.p, p...)
}

func (k *pickler) endFrame() {
	if k.frame < 0 {
		return
	}
	if n := len(k.p) - k.frame - frameHeader; n < frameLeast {
		k.p = append(k.p[:k.frame], k.p[k.frame+frameHeader:]...)
	} else {
		k.p[k.frame] = 0x95
		binary.LittleEndian.PutUint64(k.p[k.frame+1:], uint64(n))
	}
	k.frame = -1
}

// begin is called before each object.
func (k *pickler) begin() {
	if k.frame >= 0 && len(k.p)-k.frame-frameHeader >= frameTarget {
		k.endFrame()
	}
}

// counted writes a text: the operation for a length of one byte, of four or of eight; 0
// if the protocol does not have it.
func (k *pickler) counted(text string, one, four, eight byte) {
	large := k.framing && len(text) >= frameTarget
	if large {
		k.endFrame()
		k.framing = false
	}
	switch n := uint64(len(text)); {
	case n < 1<<8 && one != 0:
		k.emit(one, byte(n))
	case n < 1<<32:
		k.emit(binary.LittleEndian.AppendUint32([]byte{four}, uint32(n))...)
	case eight != 0:
		k.emit(binary.LittleEndian.AppendUint64([]byte{eight}, n)...)
	default:
		k.fail("a text of %d bytes is too long for protocol %d", n, k.proto)
	}
	k.emit([]byte(text)...)
	k.framing = k.framing || large
}

// memoize assigns a number to the object that was written.
func (k *pickler) memoize(keys ...pickleKey) {
	switch n := k.objects; {
	case k.proto >= 4:
		k.emit(0x94)
	case n < 1<<8:
		k.emit('q', byte(n))
	default:
		k.emit(binary.LittleEndian.AppendUint32([]byte{'r'}, uint32(n))...)
	}
	k.add(keys...)
}

// refer writes a reference to an earlier object.
func (k *pickler) refer(n int) {
	if n < 1<<8 {
		k.emit('h', byte(n))
		return
	}
	k.emit(binary.LittleEndian.AppendUint32([]byte{'j'}, uint32(n))...)
}

// again writes a reference to the last object with a key, if it was written before.
func (k *pickler) again(key pickleKey) bool {
	n, ok := k.last[key]
	if k.begin(); ok {
		k.refer(n)
	}
	return ok
}

// save writes an object.
func (k *pickler) save(v value.Value) {
	if k.err != nil {
		return
	}
	if k.depth++; k.depth > maxRecursion {
		k.fail("a value nested more than %d deep", maxRecursion)
		return
	}
	defer func() { k.depth-- }()
	k.begin()
	if class := v.Class(); class != "" {
		if s := k.codec.classes[class].save; s != nil {
			s(k, v)
		} else {
			k.fail("%v of class %q cannot be part of a pickle", v.Kind(), class)
		}
		return
	}
	switch v.Kind() {
	case value.KindNull:
		k.emit('N')
	case value.KindBool:
		if v.Bool() {
			k.emit(0x88)
		} else {
			k.emit(0x89)
		}
	case value.KindInt:
		k.saveInt(v.Int())
	case value.KindUint, value.KindBigInt:
		k.saveLong(v)
	case value.KindFloat64:
		k.saveFloat(v)
	case value.KindString:
		if !k.shared(v) {
			k.saveText(v.Text())
		}
	case value.KindList:
		k.emit(']')
		k.memoize()
		k.parts(v, 'a', 'e')
	case value.KindRecord:
		k.saveDict(v)
	default:
		k.fail("%v without a class cannot be part of a pickle", v.Kind())
	}
}

func (k *pickler) saveInt(n int64) {
	switch {
	case n >= 0 && n < 1<<8:
		k.emit('K', byte(n))
	case n >= 0 && n < 1<<16:
		k.emit('M', byte(n), byte(n>>8))
	case n == int64(int32(n)):
		k.emit(binary.LittleEndian.AppendUint32([]byte{'J'}, uint32(n))...)
	default:
		k.saveLong(value.Int(n))
	}
}

// saveLong writes an integer of more than 32 bits.
func (k *pickler) saveLong(v value.Value) {
	p := []byte(v.Text())
	switch v.Kind() {
	case value.KindInt:
		p = binary.BigEndian.AppendUint64(nil, uint64(v.Int()))
	case value.KindUint:
		p = binary.BigEndian.AppendUint64([]byte{0}, v.Uint())
	}
	for len(p) > 1 && (p[0] == 0 && p[1] < 0x80 || p[0] == 0xff && p[1] >= 0x80) {
		p = p[1:]
	}
	if len(p) <= 4 {
		k.saveInt(integerOf(p).Int())
		return
	}
	k.counted(string(backwards(p)), 0x8a, 0x8b, 0)
}

func (k *pickler) saveFloat(v value.Value) {
	if k.expects(v, value.KindFloat64) {
		k.emit(binary.BigEndian.AppendUint64([]byte{'G'}, uint64(v.Int()))...)
	}
}

// shared writes a reference in place of a string or bytes, if the variant says so.
func (k *pickler) shared(v value.Value) bool {
	key, _ := keyOf(v)
	n, ok := k.last[key]
	switch {
	case !ok || v.Variant() == pickleAgain:
		return false
	case v.Variant() == pickleFirst:
		n = k.first[key]
	}
	k.refer(n)
	return true
}

// saveText writes a string with a number. keys are further keys of it.
func (k *pickler) saveText(s string, keys ...pickleKey) {
	if k.proto < 4 {
		k.counted(s, 0, 'X', 0)
	} else {
		k.counted(s, 0x8c, 'X', 0x8d)
	}
	k.memoize(append(keys, pickleKey{pickleString, s})...)
}

// saveBytes writes bytes, which have no operation in protocol 2.
func (k *pickler) saveBytes(v value.Value) {
	key, ok := keyOf(v)
	switch {
	case !ok:
		k.fail("expected bytes, found %v", v.Kind())
	case k.shared(v):
	default:
		k.saveNewBytes(key)
	}
}

func (k *pickler) saveNewBytes(key pickleKey) {
	switch {
	case k.proto >= 4:
		k.counted(key.text, 'C', 'B', 0x8e)
	case k.proto == 3:
		k.counted(key.text, 'C', 'B', 0)
	case key.text == "":
		k.reduce("builtins.bytes", func() {}, key)
		return
	default:
		k.reduce(encodeFunction, func() {
			k.begin()
			k.saveText(latin1(key.text))
			if !k.again(pickleKey{kind: pickleEncoding}) {
				k.saveText("latin1", pickleKey{kind: pickleEncoding})
			}
			k.tuple(2)
		}, key)
		return
	}
	k.memoize(key)
}

// latin1 returns a string with a character for each byte.
func latin1(p string) string {
	var b strings.Builder
	for i := range len(p) {
		b.WriteRune(rune(p[i]))
	}
	return b.String()
}

// tuple ends a tuple of 1 to 3 objects, which were written.
func (k *pickler) tuple(n byte) {
	k.emit(0x84 + n)
	k.memoize()
}

// reduce writes an object as a class, or a function, and its arguments. args writes a
// tuple; if it writes nothing, the tuple is empty.
func (k *pickler) reduce(class string, args func(), keys ...pickleKey) {
	k.global(class)
	k.begin()
	before := k.objects
	if args(); k.objects == before {
		k.emit(')')
	}
	k.emit('R')
	k.memoize(keys...)
}

// global writes a class or a function.
func (k *pickler) global(class string) {
	key := pickleKey{pickleGlobal, class}
	if k.again(key) {
		return
	}
	i := strings.LastIndexByte(class, '.')
	module, name := class[:i], class[i+1:]
	if k.proto < 4 {
		if k.proto == 2 && module == "builtins" {
			module = "__builtin__"
		}
		k.emit(fmt.Appendf(nil, "c%s\n%s\n", module, name)...)
	} else {
		if key := (pickleKey{pickleModule, module}); !k.again(key) {
			k.saveText(module, key)
		}
		k.begin()
		k.saveText(name)
		k.emit(0x93)
	}
	k.memoize(key)
}

// parts writes the elements of a list: one for a single one.
func (k *pickler) parts(v value.Value, one, many byte) {
	n := v.Len()
	if n == 1 {
		k.save(v.At(0))
		k.emit(one)
		return
	}
	for i := 0; i < n; {
		k.emit('(')
		for end := min(n, i+pickleBatch); i < end; i++ {
			k.save(v.At(i))
		}
		k.emit(many)
	}
}

// key checks and writes a key of a dict or an element of a set.
func (k *pickler) key(v value.Value) {
	if !hashable(v) {
		k.fail("%v cannot be a key in Python", v.Kind())
	}
	k.save(v)
}

// saveDict writes a dict, which is a record or a map.
func (k *pickler) saveDict(v value.Value) {
	isMap := v.Kind() == value.KindMap
	if !isMap && hasDuplicates(v.Shape().Names) {
		k.fail("a key of a dict occurs twice")
	}
	k.emit('}')
	k.memoize()
	entry := func(i int) {
		if isMap {
			k.key(v.Key(i))
		} else {
			key := value.String(v.Name(i))
			if s := v.Shape(); s.Variants != nil {
				key = key.WithVariant(s.Variants[i])
			}
			k.save(key)
		}
		k.save(v.At(i))
	}
	if v.Len() == 1 {
		entry(0)
		k.emit('s')
		return
	}
	k.batches(v.Len(), 'u', entry)
}

// batches writes parts of a dict or a set: after a full batch there is another one, also
// an empty one.
func (k *pickler) batches(n int, op byte, one func(i int)) {
	if n == 0 {
		return
	}
	for i := 0; ; {
		k.emit('(')
		end := min(n, i+pickleBatch)
		full := end == i+pickleBatch
		for ; i < end; i++ {
			one(i)
		}
		if k.emit(op); !full {
			return
		}
	}
}

// saveSet writes a set or, with the operation 0x91, a frozenset.
func (k *pickler) saveSet(v value.Value, class string, op byte) {
	if !k.expects(v, value.KindList) {
		return
	}
	one := func(i int) { k.key(v.At(i)) }
	switch {
	case k.proto < 4:
		for i := range v.Len() {
			if !hashable(v.At(i)) {
				k.fail("%v cannot be an element of a set in Python", v.At(i).Kind())
			}
		}
		k.reduce(builtins+class, func() {
			k.save(v.WithClass(""))
			k.tuple(1)
		})
	case op == 0x91:
		k.emit('(')
		for i := range v.Len() {
			one(i)
		}
		k.emit(op)
		k.memoize()
	default:
		k.emit(0x8f)
		k.memoize()
		k.batches(v.Len(), op, one)
	}
}

func (k *pickler) saveTuple(v value.Value) {
	if !k.expects(v, value.KindList) {
		return
	}
	n := v.Len()
	if n == 0 {
		k.emit(')')
		return
	}
	if n > 3 {
		k.emit('(')
	}
	for i := range n {
		k.save(v.At(i))
	}
	if n > 3 {
		k.emit('t')
		k.memoize()
		return
	}
	k.tuple(byte(n))
}
