package types

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format/value"
)

// unpickler runs the operations of a pickle that make values.
type unpickler struct {
	classes map[string]pickleClass
	arena   *value.Arena
	stack   []pickled
	marks   []int           // lengths of the stack
	objects map[int]pickled // that can be referred to
	memo    pickleMemo
	shape   *value.Shape // of the last dict
	text    int          // bytes of texts that are references
	class   string       // the first class that is not known
}

// pickled is an object on the stack.
type pickled struct {
	kind  pickledKind
	value value.Value   // of a value; the name of a class
	parts []value.Value // of an object that can grow
}

type pickledKind uint8

const (
	pickledValue pickledKind = iota
	pickledClass
	pickledList
	pickledDict
	pickledSet
)

// pickleGrown are the kinds of objects that operations add parts to, with the number of
// parts of each: 2 is a key and a value.
var pickleGrown = map[byte]struct {
	kind pickledKind
	each int
	many bool // all after the mark
}{
	'a': {pickledList, 1, false}, 'e': {pickledList, 1, true}, 's': {pickledDict, 2, false}, 'u': {pickledDict, 2, true}, 0x90: {pickledSet, 1, true},
}

// run returns the value of p, which pickleEnd accepts. ok is false if it is not decoded.
func (u *unpickler) run(p []byte) (v value.Value, ok bool) {
	for off := 0; off < len(p); {
		arg, n, err := pickleOp(p[off:])
		if err != nil || !u.step(p[off], arg) {
			return v, false
		}
		off += n
	}
	if len(u.stack) != 1 || len(u.marks) > 0 {
		return v, false
	}
	variant := p[1]
	if v, ok = u.finish(u.stack[0]); variant == preferredPickle {
		variant = 0
	} else if v.IsNull() {
		variant += value.EncodedNull
	}
	return v.WithVariant(variant), ok
}

// globalName returns the name of a class from two lines.
func globalName(lines []byte) string {
	module, name, _ := strings.Cut(strings.TrimSuffix(string(lines), "\n"), "\n")
	if module == "__builtin__" { // of Python 2
		module = "builtins"
	}
	return module + "." + name
}

// known reports whether a class is known, and records it otherwise.
func (u *unpickler) known(class string) bool {
	if class == encodeFunction || u.classes[strings.TrimPrefix(class, builtins)].build != nil {
		return true
	}
	if u.class == "" && utf8.ValidString(class) && len(class) < 1000 && len(class) > 1 {
		u.class = class
	}
	return false
}

func (u *unpickler) push(kind pickledKind, v value.Value) bool {
	u.stack = append(u.stack, pickled{kind: kind, value: v})
	return true
}

// pop returns the value on top of the stack.
func (u *unpickler) pop() (v value.Value, ok bool) {
	if len(u.stack) == 0 || len(u.marks) > 0 && u.marks[len(u.marks)-1] == len(u.stack) {
		return v, false
	}
	top := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return u.finish(top)
}

// take returns the last n values of the stack; for n < 0 all after the last mark.
func (u *unpickler) take(n int) (all []value.Value, ok bool) {
	from := len(u.stack) - n
	switch low := 0; {
	case n < 0 && len(u.marks) == 0:
		return nil, false
	case n < 0:
		from = u.marks[len(u.marks)-1]
		u.marks = u.marks[:len(u.marks)-1]
	default:
		if len(u.marks) > 0 {
			low = u.marks[len(u.marks)-1]
		}
		if from < low {
			return nil, false
		}
	}
	all = u.arena.Values(len(u.stack) - from)
	for i, o := range u.stack[from:] {
		if all[i], ok = u.finish(o); !ok {
			return nil, false
		}
	}
	u.stack = u.stack[:from]
	return all, true
}

// finish returns an object as a value.
func (u *unpickler) finish(o pickled) (v value.Value, ok bool) {
	switch o.kind {
	case pickledClass:
		return v, false
	case pickledList:
		return value.List(o.parts), true
	case pickledSet:
		return value.List(o.parts).WithClass("set"), true
	case pickledDict:
		return u.dict(o.parts), true
	}
	return o.value, true
}

// dict returns the value of a dict: a record if all keys are strings.
func (u *unpickler) dict(pairs []value.Value) value.Value {
	n := len(pairs) / 2
	s := &value.Shape{Names: make([]string, n)}
	for i := range n {
		key := pairs[2*i]
		if k, ok := keyOf(key); !ok || k.kind != pickleString {
			return value.Map(pairs).WithClass("dict")
		}
		s.Names[i] = key.Text()
		if key.Variant() != 0 {
			if s.Variants == nil {
				s.Variants = make([]uint8, n)
			}
			s.Variants[i] = key.Variant()
		}
	}
	if u.shape == nil || !slices.Equal(u.shape.Names, s.Names) || !slices.Equal(u.shape.Variants, s.Variants) {
		u.shape = s
	}
	all := u.arena.Values(n)
	for i := range all {
		all[i] = pairs[2*i+1]
	}
	return value.Record(u.shape, all)
}

// step runs one operation. It returns false for one that is not decoded.
func (u *unpickler) step(op byte, arg []byte) bool {
	if grown, ok := pickleGrown[op]; ok {
		n := grown.each
		if grown.many {
			n = -1
		}
		parts, ok := u.take(n)
		if !ok || len(parts)%grown.each != 0 || len(u.stack) == 0 || u.stack[len(u.stack)-1].kind != grown.kind {
			return false
		}
		top := &u.stack[len(u.stack)-1]
		top.parts = append(top.parts, parts...)
		return true
	}
	switch op {
	case 0x80, 0x95, pickleStop: // protocol, frame: checked by writing the value
		return true
	case '(':
		u.marks = append(u.marks, len(u.stack))
		return true
	case 'N':
		return u.push(pickledValue, value.Null())
	case 0x88, 0x89:
		return u.push(pickledValue, value.Bool(op == 0x88))
	case 'K', 'M':
		return u.push(pickledValue, value.Int(int64(littleEndian(arg))))
	case 'J':
		return u.push(pickledValue, value.Int(int64(int32(littleEndian(arg)))))
	case 0x8a, 0x8b:
		return len(arg) <= maxPickleInt && u.push(pickledValue, integerOf(backwards(arg)))
	case 'G':
		return u.push(pickledValue, floatOf(binary.BigEndian.Uint64(arg)))
	case 'X', 0x8c, 0x8d:
		return utf8.Valid(arg) && u.push(pickledValue, u.fresh(value.String(u.arena.Text(arg))))
	case 'C', 'B', 0x8e:
		return u.push(pickledValue, u.fresh(value.BytesOf(u.arena.Text(arg)).WithClass("bytes")))
	case ']':
		return u.push(pickledList, value.Null())
	case '}':
		return u.push(pickledDict, value.Null())
	case 0x8f:
		return u.push(pickledSet, value.Null())
	case 'q', 'r', 0x94:
		return u.memoize(op, arg)
	case 'h', 'j':
		return u.get(int(littleEndian(arg)))
	case 'c':
		class := globalName(arg)
		return u.known(class) && u.push(pickledClass, value.String(class))
	case 0x93:
		names, ok := u.take(2)
		if !ok || names[0].Kind() != value.KindString || names[1].Kind() != value.KindString {
			return false
		}
		class := names[0].Text() + "." + names[1].Text()
		return u.known(class) && u.push(pickledClass, value.String(class))
	case 'R':
		return u.reduce()
	case ')':
		return u.tuple(0)
	case 0x85, 0x86, 0x87:
		return u.tuple(int(op - 0x84))
	case 't':
		return u.tuple(-1)
	case 0x91:
		parts, ok := u.take(-1)
		return ok && u.push(pickledValue, value.List(parts).WithClass("frozenset"))
	}
	return false
}

// tuple makes a tuple of the last n values of the stack; see take.
func (u *unpickler) tuple(n int) bool {
	parts, ok := u.take(n)
	return ok && u.push(pickledValue, value.List(parts).WithClass("tuple"))
}

// floatOf returns a float. It has a class if its text is the text of another value.
func floatOf(bits uint64) value.Value {
	v := value.Float64(bits)
	if text := v.String(); text == "-0" || strings.ContainsAny(text, ".e") {
		return v
	}
	return v.WithClass("float")
}

// fresh returns a text with the variant for one that is not a reference.
func (u *unpickler) fresh(v value.Value) value.Value {
	if k, ok := keyOf(v); ok {
		if _, ok := u.memo.last[k]; ok {
			return v.WithVariant(pickleAgain)
		}
	}
	return v
}

// memoize assigns a number to the object on top of the stack.
func (u *unpickler) memoize(op byte, arg []byte) bool {
	if len(u.stack) == 0 || op != 0x94 && littleEndian(arg) != uint64(u.memo.objects) {
		return false
	}
	o := u.stack[len(u.stack)-1]
	switch k, text := keyOf(o.value); {
	case o.kind == pickledValue && text:
		u.objects[u.memo.objects] = o
		u.memo.add(k)
	case o.kind == pickledClass, o.kind == pickledValue && o.value.Class() == zoneClass:
		u.objects[u.memo.objects] = o
		u.memo.add()
	default:
		u.memo.add()
	}
	return true
}

// get pushes an earlier object.
func (u *unpickler) get(i int) bool {
	o, ok := u.objects[i]
	if !ok {
		return false
	}
	if k, ok := keyOf(o.value); ok && o.kind == pickledValue {
		switch i {
		case u.memo.last[k]:
			o.value = o.value.WithVariant(0)
		case u.memo.first[k]:
			o.value = o.value.WithVariant(pickleFirst)
		default: // of a module, or not decoded
			o.value = o.value.WithVariant(pickleAgain)
		}
		if u.text += len(k.text); u.text > maxPickleText {
			return false
		}
	}
	u.stack = append(u.stack, o)
	return true
}

// reduce makes an object of a class from its arguments.
func (u *unpickler) reduce() bool {
	args, ok := u.pop()
	if !ok || args.Class() != "tuple" || len(u.stack) == 0 || u.stack[len(u.stack)-1].kind != pickledClass {
		return false
	}
	name := u.stack[len(u.stack)-1].value.Text()
	u.stack = u.stack[:len(u.stack)-1]
	class := strings.TrimPrefix(name, builtins)
	build := u.classes[class].build
	if name == encodeFunction {
		class, build = "bytes", encoded
	}
	v, ok := build(args)
	return ok && u.push(pickledValue, u.fresh(v.WithClass(class)))
}
