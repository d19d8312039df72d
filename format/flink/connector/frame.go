package connector

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/value"
)

// candidate is a structure that a frame can hold: one version of one class.
type candidate struct {
	connector string
	version   int32
	body      record
	framed    record // body with the version as its first field
}

// candidates are the structures that a frame can hold.
type candidates []candidate

// set returns candidates. It is an interface because structures contain each other: a
// hybrid source has splits of all sources.
type set interface{ candidates() candidates }

func (c candidates) candidates() candidates { return c }

// versions returns the candidates of a class, one for each version of a range.
func versions(connector string, from, to int32, of func(version int32) record) (all candidates) {
	for v := from; v <= to; v++ {
		body := of(v)
		framed := record{class: body.class, shape: &value.Shape{Names: append([]string{"version"}, body.shape.Names...)}}
		all = append(all, candidate{connector, v, body, framed})
	}
	return all
}

// one returns the candidate of a class that has a single version.
func one(connector string, version int32, body record) candidates {
	return versions(connector, version, version, func(int32) record { return body })
}

// The record of bytes in a frame that are not decoded.
var notDecoded = &value.Shape{Names: []string{"version", "not_decoded", "bytes"}}

// frame is a structure in the framing of SimpleVersionedSerialization (spec
// flink-connector-states 2):
//
//	int    version of the serializer
//	int    length
//	bytes
//
// Nothing in it names the class. The frame is decoded if exactly one of the
// candidates with the version reads all bytes, and would write the same bytes; one that
// decodes all frames in it goes before one that does not. Otherwise its value is a
// record of the version, the reason, and the bytes.
type frame struct {
	what  string // of the structures: "split"
	known set
}

func (f frame) read(r *reader) value.Value {
	version := r.I32()
	p := r.Blob("a " + f.what)
	if r.Err() != nil {
		return value.Null()
	}
	return f.body(r, version, p)
}

// body returns the value of the bytes in a frame.
func (f frame) body(r *reader, version int32, p []byte) value.Value {
	var found value.Value
	var names []string
	whole := false   // found is decoded to the last frame
	var failed error // of the first candidate that does not fit
	known, class := 0, ""
	for _, c := range f.known.candidates() {
		if c.version != version {
			continue
		}
		known++
		part := r.part(p)
		v := c.body.read(part)
		part.end()
		if err := part.Err(); err != nil {
			if failed == nil {
				failed, class = err, c.body.class
			}
			continue
		}
		again := writer{}
		if c.body.write(&again, v); again.err != nil || !bytes.Equal(again.p, p) {
			continue // bytes that the connector does not write
		}
		switch all := isDecoded(v); {
		case whole && !all:
			continue
		case all && !whole:
			whole, names = true, nil
		}
		parts := make([]value.Value, 1, 1+v.Len())
		parts[0] = value.Int(int64(version))
		for i := range v.Len() {
			parts = append(parts, v.At(i))
		}
		found = c.framed.value(parts)
		names = append(names, c.body.class)
	}
	why := "bytes that the connector does not write"
	switch {
	case len(names) == 1:
		return found
	case len(names) > 1:
		why = "could be " + strings.Join(names, " or ")
	case known == 0:
		why = fmt.Sprintf("no known %s has version %d", f.what, version)
	case known > 1:
		why = fmt.Sprintf("none of the %d known %ss of version %d fits", known, f.what, version)
	case failed != nil:
		why = fmt.Sprintf("%s: %v", class, failed)
	}
	return value.Record(notDecoded, []value.Value{value.Int(int64(version)), value.String(why), value.Bytes(p)})
}

// isDecoded reports whether all frames in v are decoded.
func isDecoded(v value.Value) bool {
	if isReason(v) {
		return false
	}
	for i := range v.Len() {
		if !isDecoded(v.At(i)) {
			return false
		}
	}
	return true
}

// isReason reports whether v is the record of bytes that are not decoded.
func isReason(v value.Value) bool {
	return v.Kind() == value.KindRecord && v.Class() == "" && v.Len() == 3 && v.Name(1) == notDecoded.Names[1]
}

func (f frame) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindRecord) || v.Len() == 0 {
		return
	}
	version, ok := versionOf(v)
	if !ok {
		w.fail("expected a record with a version, found the fields %q", names(v))
		return
	}
	w.p = binary.BigEndian.AppendUint32(w.p, uint32(version))
	w.sized(func() { f.writeBody(w, version, v) })
}

// versionOf returns the version in the record of a frame.
func versionOf(v value.Value) (int32, bool) {
	if v.Len() == 0 || v.Name(0) != "version" || v.At(0).Kind() != value.KindInt {
		return 0, false
	}
	n := v.At(0).Int()
	return int32(n), n >= math.MinInt32 && n <= math.MaxInt32
}

func names(v value.Value) (all []string) {
	for i := range v.Len() {
		all = append(all, v.Name(i))
	}
	return all
}

// writeBody writes the bytes in a frame.
func (f frame) writeBody(w *writer, version int32, v value.Value) {
	if isReason(v) {
		if w.expects(v.At(2), value.KindBytes) {
			w.p = append(w.p, v.At(2).Text()...)
		}
		return
	}
	fields := names(v)
	var expected []string
	for _, c := range f.known.candidates() {
		if c.version != version || c.body.class != v.Class() {
			continue
		}
		if expected = c.framed.shape.Names; !slices.Equal(fields, expected) {
			continue
		}
		parts, shape := make([]value.Value, 0, v.Len()-1), &value.Shape{Names: fields[1:]}
		for i := 1; i < v.Len(); i++ {
			parts = append(parts, v.At(i))
		}
		c.body.write(w, value.Record(shape, parts))
		return
	}
	if expected != nil {
		w.fail("expected the fields %q of a %s, found %q", expected, v.Class(), fields)
		return
	}
	w.fail("%q is not a %s of version %d", v.Class(), f.what, version)
}

// frames is a list in the framing: int version, int count, and an int length
// and the bytes of each. Its value is a record of the version and the elements; an
// element has no version of its own.
type frames struct {
	what  string
	known set
	names *value.Shape
}

func framesOf(what string, known set) frames {
	return frames{what, known, &value.Shape{Names: []string{"version", what + "s"}}}
}

func (f frames) read(r *reader) value.Value {
	version := r.I32()
	n := r.Count(f.what, 4)
	all := make([]value.Value, 0, min(n, 1024))
	for range n {
		p := r.Blob("a " + f.what)
		if r.Err() != nil {
			return value.Null()
		}
		all = append(all, frame{f.what, f.known}.body(r, version, p))
	}
	return value.Record(f.names, []value.Value{value.Int(int64(version)), value.List(all)})
}

func (f frames) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 2 || v.At(1).Kind() != value.KindList {
		w.fail("expected the fields %q, found %q", f.names.Names, names(v))
		return
	}
	w.p = binary.BigEndian.AppendUint32(w.p, uint32(version))
	all := v.At(1)
	w.int32(all.Len())
	for i := range all.Len() {
		if !(frame{f.what, f.known}).writeSized(w, version, all.At(i), "element", i) {
			return
		}
	}
}

// writeSized writes the length and the body of a value whose version is written once
// for several. It returns false, with an error that names the value, if the value has
// another version.
func (f frame) writeSized(w *writer, version int32, v value.Value, what string, i int) bool {
	if own, ok := versionOf(v); !ok || own != version {
		w.fail("%s %d: expected version %d", what, i, version)
		return false
	}
	w.sized(func() { f.writeBody(w, version, v) })
	return true
}

// NotDecoded returns why a value, or a frame in it, is not decoded, and whether that is
// so.
func NotDecoded(v value.Value) (why string, ok bool) {
	if isReason(v) {
		return v.At(1).Text(), true
	}
	for i := range v.Len() {
		if why, ok = NotDecoded(v.At(i)); ok {
			return why, ok
		}
	}
	return "", false
}

// IsEmpty reports whether the bytes of a value that is not decoded are zeros, which is
// a structure without an element in all connectors.
func IsEmpty(v value.Value) bool {
	if isReason(v) {
		return strings.Trim(v.At(2).Text(), "\x00") == ""
	}
	for i := range v.Len() {
		if _, undecoded := NotDecoded(v.At(i)); undecoded && !IsEmpty(v.At(i)) {
			return false
		}
	}
	return true
}
