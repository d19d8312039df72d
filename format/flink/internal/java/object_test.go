package java_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// object is a Java object stream spelled out after chapter 6 of the Java
// Object Serialization Specification; build writes what follows the header.
type object struct {
	name  string
	build func(b *sptest.Buf)
}

// class writes a class description without annotation or super class; fields
// are written by the caller before it ends.
func class(b *sptest.Buf, name string, flags int, fields ...string) *sptest.Buf {
	b.U8(0x72).UTF(name).I64(1).U8(flags).U8(0).U8(len(fields))
	for _, f := range fields {
		kind, sig, _ := strings.Cut(f, " ")
		b.Raw(kind).UTF("f")
		if sig != "" {
			b.U8(0x74).UTF(sig)
		}
	}
	return b.Hex("78 70")
}

var objects = []object{
	{"null", func(b *sptest.Buf) { b.U8(0x70) }},
	{"string", func(b *sptest.Buf) { b.U8(0x74).UTF("text") }},
	{"long string", func(b *sptest.Buf) { b.U8(0x7c).I64(4).Raw("text") }},
	{"empty class", func(b *sptest.Buf) { class(b.U8(0x73), "A", 2) }},
	{"all primitives", func(b *sptest.Buf) {
		class(b.U8(0x73), "A", 2, "B", "C", "D", "F", "I", "J", "S", "Z").Raw(strings.Repeat("x", 1+2+8+4+4+8+2+1))
	}},
	{"string field", func(b *sptest.Buf) { class(b.U8(0x73), "A", 2, "L Ljava/lang/String;").U8(0x74).UTF("v") }},
	{"field that is the object itself", func(b *sptest.Buf) {
		class(b.U8(0x73), "A", 2, "L Ljava/lang/Object;").Hex("71 007e0002") // class, its signature, object
	}},
	{"super class", func(b *sptest.Buf) {
		b.Hex("73 72").UTF("B").I64(1).Hex("02 0001").Raw("I").UTF("b").U8(0x78) // B { int b } extends
		class(b, "A", 2, "S")                                                    // A { short f }
		b.Hex("aaaa bbbbbbbb")                                                   // A's fields first
	}},
	{"class's own data", func(b *sptest.Buf) {
		class(b.U8(0x73), "A", 3, "I").I32(1).Hex("77 02 0102").Hex("7a 00000001 ff").U8(0x74).UTF("s").Hex("70 78")
	}},
	{"own data of a class without own data", func(b *sptest.Buf) { class(b.U8(0x73), "A", 3).Hex("78") }},
	{"externalizable with blocks", func(b *sptest.Buf) { class(b.U8(0x73), "A", 0x0c).Hex("77 01 07 78") }},
	{"class annotation", func(b *sptest.Buf) {
		b.Hex("73 72").UTF("A").I64(1).Hex("02 0000 77 01 ff 74").UTF("note").Hex("78 70")
	}},
	{"enum", func(b *sptest.Buf) {
		b.Hex("7e 72").UTF("E").I64(0).Hex("12 0000 78")
		class(b, "java.lang.Enum", 0x12).U8(0x74).UTF("ONE")
	}},
	{"int array", func(b *sptest.Buf) { class(b.U8(0x75), "[I", 2).I32(2).I32(1).I32(2) }},
	{"array of long, empty", func(b *sptest.Buf) { class(b.U8(0x75), "[J", 2).I32(0) }},
	{"string array", func(b *sptest.Buf) {
		class(b.U8(0x75), "[Ljava.lang.String;", 2).I32(3).U8(0x74).UTF("a").Hex("70 71 007e0002")
	}},
	{"array of arrays", func(b *sptest.Buf) {
		class(b.U8(0x75), "[[B", 2).I32(2)
		class(b.U8(0x75), "[B", 2).Blob("abc")
		b.Hex("75 71 007e0002").Blob("d") // the class again
	}},
	{"class object", func(b *sptest.Buf) { class(b.U8(0x76), "A", 2) }},
	{"array whose class came first as an object", func(b *sptest.Buf) {
		class(b.U8(0x75), "[Ljava.lang.Object;", 2).I32(2)
		class(b.U8(0x76), "[S", 2)                     // handles: 0 class, 1 array, 2 class [S, 3 its object
		b.Hex("75 71 007e0002").I32(1).Raw("\x00\x05") // new short[]{5}
	}},
	{"proxy", func(b *sptest.Buf) {
		b.Hex("73 7d").I32(2).UTF("a.I").UTF("b.J").U8(0x78)
		class(b, "java.lang.reflect.Proxy", 2, "L Ljava/lang/reflect/InvocationHandler;").U8(0x70)
	}},
}

func (o object) bytes() []byte {
	var b sptest.Buf
	b.Hex("aced 0005")
	o.build(&b)
	return b.B
}

// TestSkipObject: each object ends where it ends, whatever follows, and every
// cut of it is noticed.
func TestSkipObject(t *testing.T) {
	for _, o := range objects {
		whole := o.bytes()
		for _, follows := range []string{"", "\x00", "\x70\x78", "more"} {
			c := java.NewCursor(append(append([]byte(nil), whole...), follows...))
			java.SkipObject(c)
			if c.Err() != nil || c.Remaining() != len(follows) {
				t.Errorf("%s: %v, %d of %d bytes left", o.name, c.Err(), c.Remaining(), len(follows))
			}
		}
		for n := range whole {
			c := java.NewCursor(whole[:n])
			java.SkipObject(c)
			var e *format.Error
			if !errors.As(c.Err(), &e) || !errors.Is(e, format.ErrTruncated) || e.Offset < 0 || e.Offset > int64(n) {
				t.Errorf("%s cut at %d: %v", o.name, n, c.Err())
			}
		}
	}
}

func TestSkipObjectRefuses(t *testing.T) {
	nested := func(n int) func(*sptest.Buf) {
		return func(b *sptest.Buf) {
			for range n {
				class(b.U8(0x75), "[Ljava.lang.Object;", 2).I32(1)
			}
			b.U8(0x70)
		}
	}
	for _, x := range []struct {
		name  string
		build func(b *sptest.Buf)
		kind  error
		msg   string
	}{
		{"end mark", func(b *sptest.Buf) { b.U8(0x78) }, format.ErrCorrupt, "expected a Java object, found tag 0x78"},
		{"block", func(b *sptest.Buf) { b.Hex("77 01 01") }, format.ErrCorrupt, "tag 0x77"},
		{"unknown tag", func(b *sptest.Buf) { b.U8(0x20) }, format.ErrCorrupt, "unknown tag 0x20"},
		{"handle that is not there", func(b *sptest.Buf) { b.Hex("71 007e0000") }, format.ErrCorrupt, "handle 0 of 0"},
		{"negative handle", func(b *sptest.Buf) { b.Hex("71 00000000") }, format.ErrCorrupt, "refers to handle"},
		{"class that is a string", func(b *sptest.Buf) {
			class(b.U8(0x75), "[Ljava.lang.Object;", 2).I32(2).U8(0x74).UTF("s").Hex("73 71 007e0002")
		}, format.ErrCorrupt, "not a class"},
		{"enum without a name", func(b *sptest.Buf) { class(b.U8(0x7e), "E", 0x12).U8(0x78) }, format.ErrCorrupt, "expected a Java object, found tag 0x78"},
		{"field that is a block", func(b *sptest.Buf) { class(b.U8(0x73), "A", 2, "L Ljava/lang/Object;").Hex("77 00") }, format.ErrCorrupt, "expected a Java object, found tag 0x77"},
		{"element that is an end mark", func(b *sptest.Buf) { class(b.U8(0x75), "[Ljava.lang.Object;", 2).I32(1).U8(0x78) }, format.ErrCorrupt, "expected a Java object, found tag 0x78"},
		{"object without class", func(b *sptest.Buf) { b.Hex("73 74").UTF("x") }, format.ErrCorrupt, "expected a Java class, found tag 0x74"},
		{"field type", func(b *sptest.Buf) { b.Hex("73 72").UTF("A").I64(1).Hex("02 0001").Raw("X").UTF("f") }, format.ErrCorrupt, "unknown type 0x58"},
		{"array of no array class", func(b *sptest.Buf) { class(b.U8(0x75), "A", 2).I32(0) }, format.ErrCorrupt, "not an array class"},
		{"array of null class", func(b *sptest.Buf) { b.Hex("75 70") }, format.ErrCorrupt, "not an array class"},
		{"array count -1", func(b *sptest.Buf) { class(b.U8(0x75), "[I", 2).I32(-1) }, format.ErrCorrupt, "invalid count -1"},
		{"array count", func(b *sptest.Buf) { class(b.U8(0x75), "[J", 2).I32(1<<31 - 1).I64(0) }, format.ErrTruncated, "a Java array: expected 2147483647"},
		{"long string", func(b *sptest.Buf) { b.U8(0x7c).I64(1<<63 - 1).Raw("text") }, format.ErrTruncated, ", 4 left"},
		{"long string of -1", func(b *sptest.Buf) { b.U8(0x7c).I64(-1).Raw("text") }, format.ErrCorrupt, "a Java string of -1 bytes"},
		{"externalizable of its own", func(b *sptest.Buf) { class(b.U8(0x73), "A", 4).Hex("00") }, format.ErrUnsupported, "the end of a Java object is known only to its class"},
		{"class that is its own super class", func(b *sptest.Buf) { b.Hex("73 72").UTF("A").I64(1).Hex("02 0000 78 71 007e0000") }, format.ErrLimit, "ancestors"},
		{"too deep", nested(100), format.ErrLimit, "nested more than"},
	} {
		c := java.NewCursor(object{build: x.build}.bytes())
		java.SkipObject(c)
		var e *format.Error
		if !errors.As(c.Err(), &e) || !errors.Is(e, x.kind) || !strings.Contains(e.Msg, x.msg) || e.Offset < 4 {
			t.Errorf("%s: %v", x.name, c.Err())
		}
	}
	c := java.NewCursor(object{build: nested(60)}.bytes())
	if java.SkipObject(c); c.Err() != nil {
		t.Errorf("60 deep: %v", c.Err())
	}
}

// FuzzSkipObject: no panic, an end inside the input, and the same end whatever
// follows.
func FuzzSkipObject(f *testing.F) {
	if len(objects) == 0 {
		f.Fatal("no seeds")
	}
	for _, o := range objects {
		f.Add(o.bytes())
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		c := java.NewCursor(p)
		java.SkipObject(c)
		read := java.NewCursor(p)
		java.ReadObject(read)
		if (c.Err() == nil) != (read.Err() == nil) || c.Offset() != read.Offset() {
			t.Fatalf("skipped to %d, %v; read to %d, %v", c.Offset(), c.Err(), read.Offset(), read.Err())
		}
		var e *format.Error
		if errors.As(c.Err(), &e) {
			if e.Offset < 0 || e.Offset > int64(len(p)) {
				t.Fatalf("%v in %d bytes", e, len(p))
			}
			return
		}
		alone := java.NewCursor(p[:c.Offset()])
		if java.SkipObject(alone); alone.Err() != nil || alone.Remaining() != 0 {
			t.Fatalf("without what follows: %v, %d left", alone.Err(), alone.Remaining())
		}
	})
}

// TestReadObject: the fields of an object, of its ancestors too, and what its class
// wrote.
func TestReadObject(t *testing.T) {
	utf := func(s string) string { return "\x00" + string(rune(len(s))) + s }
	in := "\xac\xed\x00\x05\x73\x72" + utf("C") + "\x00\x00\x00\x00\x00\x00\x00\x01\x03\x00\x01I" + utf("n") + "\x78" +
		"\x72" + utf("B") + "\x00\x00\x00\x00\x00\x00\x00\x02\x02\x00\x02B" + utf("n") + "L" + utf("s") + "\x74" + utf("LS;") + "\x78\x70" + // ancestor
		"\xff\x74" + utf("é") + // its fields: the text has two bytes
		"\x00\x00\x00\x07\x77\x02ab\x71\x00\x7e\x00\x00\x78"
	in = strings.Replace(in, utf("é"), "\x00\x02é", 1)
	c := java.NewCursor([]byte(in))
	o := java.ReadObject(c)
	if c.Err() != nil || c.Remaining() > 0 {
		t.Fatal(c.Err(), c.Remaining())
	}
	n, ok := o.Int("n")
	if o.Class != "C" || o.Kind != java.ObjectPlain || !ok || n != 7 || len(o.Fields) != 3 || o.Fields[0].Bits != -1 || o.Fields[0].Owner != "B" {
		t.Errorf("%+v", o)
	}
	if s := o.Object("s"); s == nil || s.Kind != java.ObjectString || s.Text != "é" {
		t.Errorf("%+v", s)
	}
	if len(o.Parts) != 2 || string(o.Parts[0].Data) != "ab" {
		t.Errorf("written: %+v", o.Parts)
	}
	if _, ok := o.Int("s"); ok || o.Object("x") != nil || (*java.Object)(nil).Object("x") != nil {
		t.Error("a number that is an object, or a field that is absent")
	}
}
