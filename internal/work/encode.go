package work

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
)

// Version is the version of the encoding.
const Version = 1

// slots are the numbers of slots in the encoding.
var slots = map[format.Slot]int64{format.SlotManaged: 1, format.SlotRaw: 2, format.SlotManagedKeyed: 3, format.SlotRawKeyed: 4}

// Append appends the encoding of the unit.
func (u Unit) Append(dst []byte) []byte {
	b := bytes.NewBuffer(dst)
	e := encoder{msgpack.NewEncoder(b)}
	e.array(8)
	e.int(Version)
	e.text(string(u.Job))
	if h := u.Handle; h == (Handle{}) {
		e.check(e.EncodeNil())
	} else {
		e.array(6)
		e.int(int64(h.Operator))
		e.int(int64(h.Subtask))
		e.check(e.EncodeBytes(h.ID[:]))
		e.int(int64(h.Index))
		e.int(slots[h.Slot])
		e.int(int64(h.Nested))
	}
	e.int(int64(u.State))
	e.int(u.First)
	e.int(u.Count)
	e.text(u.Target)
	e.array(len(u.Parts))
	for _, p := range u.Parts {
		e.array(3)
		e.text(p.Stream)
		e.int(p.Off)
		e.int(p.Size)
	}
	return b.Bytes()
}

// encoder writes to memory and never fails.
type encoder struct{ *msgpack.Encoder }

func (e encoder) check(err error) {
	if err != nil {
		panic(err)
	}
}
func (e encoder) array(n int)   { e.check(e.EncodeArrayLen(n)) }
func (e encoder) int(n int64)   { e.check(e.EncodeInt(n)) }
func (e encoder) text(s string) { e.check(e.EncodeString(s)) }

// Decode decodes one unit, which must take all of p. The error matches
// format.ErrUnsupported for an unknown version, else format.ErrCorrupt.
func Decode(p []byte) (Unit, error) {
	r := bytes.NewReader(p)
	d := decoder{Decoder: msgpack.NewDecoder(r), most: len(p)}
	var u Unit
	n := d.array()
	if v := d.int(); d.err == nil && v != Version {
		return Unit{}, format.Errorf(format.ErrUnsupported, "unit of work of version %d, expected %d", v, Version)
	}
	d.expect(n, 8)
	u.Job = Job(d.text())
	if n := d.array(); n >= 0 {
		d.expect(n, 6)
		u.Handle.Operator, u.Handle.Subtask = int(d.int()), int(d.int())
		d.expect(copy(u.Handle.ID[:], d.bytes()), len(u.Handle.ID))
		index := d.int()
		if u.Handle.Index = int32(index); int64(u.Handle.Index) != index {
			d.fail("subtask %d", index)
		}
		slot, found := d.int(), false
		for s, n := range slots {
			if n == slot {
				u.Handle.Slot, found = s, true
			}
		}
		if !found {
			d.fail("slot %d", slot)
		}
		u.Handle.Nested = int(d.int())
	}
	u.State, u.First, u.Count, u.Target = int(d.int()), d.int(), d.int(), d.text()
	for range d.array() {
		d.expect(d.array(), 3)
		u.Parts = append(u.Parts, Part{d.text(), d.int(), d.int()})
		if d.err != nil {
			break
		}
	}
	if d.err == nil && r.Len() > 0 {
		d.fail("%d bytes after it", r.Len())
	}
	if d.err != nil {
		return Unit{}, d.err
	}
	return u, nil
}

// decoder keeps the first error.
type decoder struct {
	*msgpack.Decoder
	most int // maximum length of an array
	err  error
}

func (d *decoder) fail(msg string, args ...any) {
	if d.err == nil {
		d.err = format.At(format.Errorf(format.ErrCorrupt, msg, args...), "unit of work")
	}
}

func (d *decoder) expect(n, want int) {
	if n != want {
		d.fail("expected %d, found %d", want, n)
	}
}

func value[T any](d *decoder, read func() (T, error)) (v T) {
	if d.err != nil {
		return v
	}
	v, err := read()
	if err != nil {
		d.fail("%v", err)
	}
	return v
}

func (d *decoder) int() int64    { return value(d, d.DecodeInt64) }
func (d *decoder) text() string  { return value(d, d.DecodeString) }
func (d *decoder) bytes() []byte { return value(d, d.DecodeBytes) }

// array returns the length of an array, or -1 for nil.
func (d *decoder) array() int {
	n := value(d, d.DecodeArrayLen)
	if n > d.most {
		d.fail("an array of %d in %d bytes", n, d.most)
		return 0
	}
	return n
}
