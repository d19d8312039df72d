package java_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

func TestCursor(t *testing.T) {
	c := java.NewCursor([]byte("\x07\x01\x02\xff\xff\xff\xfe\x80\x00\x00\x00\x00\x00\x00\x01\x01\x00\x02hi\x00\x00\x00\x03abcrest"))
	if v := c.U8(); v != 7 {
		t.Error(v)
	}
	if v := c.U16(); v != 0x102 {
		t.Error(v)
	}
	if v := c.I32(); v != -2 {
		t.Error(v)
	}
	if v := c.I64(); v != -1<<63+1 {
		t.Error(v)
	}
	if !c.Bool("a mark") {
		t.Error("bool")
	}
	at := c.Offset()
	if v := c.Text().String(); v != "hi" {
		t.Error(v)
	}
	if v := c.Blob("bytes"); string(v) != "abc" {
		t.Errorf("%q", v)
	}
	if v := c.Since(at); string(v) != "\x00\x02hi\x00\x00\x00\x03abc" {
		t.Errorf("%q", v)
	}
	if c.Remaining() != 4 || c.Err() != nil {
		t.Error(c.Remaining(), c.Err())
	}
	if p := c.Bytes(4, "the rest"); string(p) != "rest" || cap(p) != 4 {
		t.Errorf("%q, %d", p, cap(p))
	}
}

// TestCursorErrors: every read that fails says where its field starts, and
// after the first error nothing moves or changes.
func TestCursorErrors(t *testing.T) {
	for _, x := range []struct {
		name   string
		in     string
		read   func(c *java.Cursor)
		offset int64
		kind   error
		msg    string
	}{
		{"u8", "", func(c *java.Cursor) { c.U8() }, 0, format.ErrTruncated, "cut short: expected a byte, nothing left"},
		{"u16", "1", func(c *java.Cursor) { c.U16() }, 0, format.ErrTruncated, "2-byte"},
		{"i32", "123", func(c *java.Cursor) { c.I32() }, 0, format.ErrTruncated, "expected a 4-byte number, 3 bytes left"},
		{"i64", "1234567", func(c *java.Cursor) { c.I64() }, 0, format.ErrTruncated, "8-byte"},
		{"bool", "x\x02", func(c *java.Cursor) { c.U8(); c.Bool("a mark") }, 1, format.ErrCorrupt, "a mark: expected 0 or 1, found 2"},
		{"count -1", "\xff\xff\xff\xff", func(c *java.Cursor) { c.Count("things", 1) }, 0, format.ErrCorrupt, "things: invalid count -1"},
		{"count too large", "\x00\x00\x00\x03\x01\x01\x01\x01\x01", func(c *java.Cursor) { c.Count("things", 2) }, 0, format.ErrTruncated, "things: expected 3, at least 6 bytes; 5 bytes left"},
		{"count cut", "\x00\x00", func(c *java.Cursor) { c.Count("things", 1) }, 0, format.ErrTruncated, "4-byte"},
		{"blob -1", "\xff\xff\xff\xffx", func(c *java.Cursor) { c.Blob("stuff") }, 0, format.ErrCorrupt, "stuff: invalid length -1"},
		{"blob too long", "x\x00\x00\x00\x02x", func(c *java.Cursor) { c.U8(); c.Blob("stuff") }, 1, format.ErrTruncated, "expected 2 bytes of stuff, 1 byte left"},
		{"text too long", "x\x00\x02x", func(c *java.Cursor) { c.U8(); c.Text() }, 1, format.ErrTruncated, "expected a string of 2 bytes, 1 byte left"},
		{"name too long", "\x00\x02x", func(c *java.Cursor) { c.Name() }, 0, format.ErrTruncated, "a string of 2 bytes"},
		{"text", "x\x00\x01\xff", func(c *java.Cursor) { c.U8(); c.Text() }, 1, format.ErrCorrupt, "not modified UTF-8"},
		{"name", "x\x00\x01\xff", func(c *java.Cursor) { c.U8(); c.Name() }, 1, format.ErrCorrupt, "not modified UTF-8"},
		{"bytes", "12", func(c *java.Cursor) { c.Bytes(3, "an id") }, 0, format.ErrTruncated, "expected an id of 3 bytes, 2 bytes left"},
		{"negative", "12", func(c *java.Cursor) { c.Bytes(-1, "an id") }, 0, format.ErrTruncated, "an id"},
	} {
		c := java.NewCursor([]byte(x.in))
		x.read(c)
		err := c.Err()
		var e *format.Error
		if !errors.As(err, &e) || e.Offset != x.offset || !errors.Is(err, x.kind) || !strings.Contains(e.Msg, x.msg) {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if (x.kind == format.ErrCorrupt) == errors.Is(err, format.ErrTruncated) {
			t.Errorf("%s: %v: kind %v", x.name, err, e.Err)
		}
		at := c.Offset()
		if c.U8() != 0 || c.U16() != 0 || c.I32() != 0 || c.I64() != 0 || c.Count("x", 1) != 0 || c.Blob("x") != nil || c.Text() != (format.Text{}) || c.Name() != (format.Text{}) {
			t.Errorf("%s: something was read after the error", x.name)
		}
		c.Fail(99, format.ErrLimit, "later")
		if c.Offset() != at || c.Err() != err {
			t.Errorf("%s: moved on after the error: %v", x.name, c.Err())
		}
	}
}

// TestCountExact: as many as fit are accepted, one more is not.
func TestCountExact(t *testing.T) {
	for n, want := range map[byte]int{0: 0, 1: 1, 2: 2, 3: 0} {
		c := java.NewCursor([]byte{0, 0, 0, n, 1, 2, 3, 4, 5, 6, 7, 8})
		if got := c.Count("pairs", 4); got != want || (c.Err() != nil) != (n > 2) {
			t.Errorf("%d: %d, %v", n, got, c.Err())
		}
	}
}

func TestNamesAreKeptOnce(t *testing.T) {
	in := strings.Repeat("\x00\x03abc", 1000)
	c := java.NewCursor([]byte(in))
	allocs := testing.AllocsPerRun(1, func() {
		for range 400 {
			if c.Name().String() != "abc" {
				t.Fatal("name")
			}
		}
	})
	if allocs > 4 {
		t.Errorf("%v allocations", allocs)
	}
	// Names of a hostile file do not pile up without bound, and stay right.
	var many []byte
	for i := range 10_000 {
		many = append(many, 0, 2, byte(i%100)+1, byte(i/100)+1)
	}
	c = java.NewCursor(many)
	for i := range 10_000 {
		if got := c.Name().String(); got != string([]byte{byte(i%100) + 1, byte(i/100) + 1}) {
			t.Fatalf("%d: %q", i, got)
		}
	}
}

func TestAdopt(t *testing.T) {
	whole, part := java.NewCursor(make([]byte, 10)), java.NewCursor(make([]byte, 2))
	whole.Adopt(part, 5)
	if whole.Err() != nil {
		t.Fatal(whole.Err())
	}
	part.I32()
	whole.Adopt(part, 5)
	var e *format.Error
	if !errors.As(whole.Err(), &e) || e.Offset != 5 {
		t.Fatal(whole.Err())
	}
	if errors.As(part.Err(), &e); e.Offset != 0 {
		t.Error("the part's error moved too")
	}
}
