package metadata_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// refused decodes a file that must be refused and gives the error.
func refused(t *testing.T, file []byte, kind error) *format.Error {
	t.Helper()
	sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
	if sp != nil || err == nil {
		t.Fatalf("not refused: %v, %v", sp, err)
	}
	var e *format.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		t.Fatalf("%v: is no %v", err, kind)
	}
	if kind == format.ErrCorrupt && errors.Is(err, format.ErrTruncated) {
		t.Fatalf("%v: nothing is cut short here", err)
	}
	return e
}

func TestRefuseVersions(t *testing.T) {
	for _, x := range []struct {
		version int
		found   string
	}{
		{0, "version 0, written by Flink 1.1;"},
		{1, "version 1, written by Flink 1.2;"},
		{7, "version 7, newer"},
		{-1, "version -1, which no release"},
		{1<<31 - 1, "version 2147483647, which no release"},
	} {
		var b sptest.Buf
		b.I32(0x4960672d).I32(x.version).Raw(strings.Repeat("\x00", 64))
		e := refused(t, b.B, format.ErrUnsupported)
		if !strings.Contains(e.Error(), x.found) || !strings.Contains(e.Error(), "reads versions 2 to 6 (Flink 1.3 to 2.3)") || e.Offset != 4 {
			t.Errorf("version %d: %v", x.version, e)
		}
	}
}

// TestRefuse: what no release writes, at the place where it stands.
func TestRefuse(t *testing.T) {
	const (
		noStates  = "\x04\x00\x00\x00\x00"
		oneState  = "\x00\x01s\x01\x00\x00\x00\x00"
		sub       = "operator[0]/subtask 0/"
		rng       = "\x00\x00\x00\x00\x00\x00\x00\x01"
		i8        = "\x00\x00\x00\x00\x00\x00\x00\x00"
		emptyList = "\x00\x00\x00\x00"
	)
	for _, x := range []struct {
		name    string
		version int
		fill    fill
		find    string // the offset is that of this record…
		plus    int64  // …and so much more
		path    string
		msg     string
		kind    error
	}{
		{name: "stream tag", version: 4, fill: fill{managed: noStates + "\x05"}, find: noStates + "\x05", plus: 5, path: sub + "operator state", msg: "unknown tag 5 of a stream handle (known: 0, 1, 2, 3, 6, 15, 16)"},
		{name: "keyed tag where a stream stands", version: 4, fill: fill{managed: noStates + "\x0c"}, find: noStates + "\x0c", plus: 5, path: sub + "operator state", msg: "unknown tag 12 of a stream handle"},
		{name: "relative file in version 2", version: 2, fill: fill{managed: noStates + "\x06\x00\x01a" + i8}, find: noStates + "\x06", plus: 5, path: sub + "operator state", msg: "tag 6 of a stream handle is not in metadata v2"},
		{name: "operator tag", version: 4, fill: fill{managed: "\x0f"}, find: "\x00\x00\x00\x01\x0f", plus: 4, path: sub + "operator state", msg: "unknown tag 15 of an operator state handle (known: 0, 4, 17)"},
		{name: "raw operator tag", version: 4, fill: fill{raw: "\x01"}, find: "\x00\x00\x00\x01\x01", plus: 4, path: sub + "raw operator state", msg: "unknown tag 1 of an operator state handle"},
		{name: "keyed tag", version: 4, fill: fill{keyed: "\x0f"}, find: "\x00\x00\x00\x00\x0f", plus: 4, path: sub + "keyed state", msg: "unknown tag 15 of a keyed state handle (known: 0, 3, 5, 7–14): damaged, or written by a fork of Flink"},
		{name: "stream tag where a keyed handle stands", version: 4, fill: fill{rawKeyed: "\x06"}, find: "\x00\x00\x00\x00\x00\x06", plus: 5, path: sub + "raw keyed state", msg: "unknown tag 6 of a keyed state handle"},
		{name: "channel type", version: 6, fill: fill{input: "\x02" + strings.Repeat("\x00", 40)}, find: "\x00\x00\x00\x01\x02", plus: 4, path: sub + "input channels/channel handle[0]", msg: "expected type 1 or 3 of a channel handle, found 2"},
		{name: "channel type", version: 6, fill: fill{output: "\x03" + strings.Repeat("\x00", 40)}, find: "\x00\x00\x00\x01\x03", plus: 4, path: sub + "output channels/channel handle[0]", msg: "expected type 2 or 4 of a channel handle, found 3"},
		{name: "placeholder mark 2", version: 4, fill: fill{managed: "\x11" + emptyList + "\x00\x00\x00\x00\x02\x10"}, find: "\x11" + emptyList, plus: 9, path: sub + "operator state", msg: "the placeholder flag: expected 0 or 1, found 2"},
		{name: "merging handle on a file", version: 4, fill: fill{managed: "\x11" + emptyList + "\x00\x00\x00\x00\x00\x02" + i8 + "\x00\x01x"}, find: "\x11" + emptyList, plus: 10, path: sub + "operator state", msg: "not a segment"},
		{name: "mode 3", version: 4, fill: fill{managed: "\x04\x00\x00\x00\x01\x00\x01s\x03\x00\x00\x00\x00\x00"}, find: "\x00\x01s\x03", plus: 3, path: sub + `operator state/state "s"`, msg: "expected mode 0 (list), 1 (union) or 2 (broadcast), found 3"},
		{name: "repeated state", version: 4, fill: fill{managed: "\x04\x00\x00\x00\x02" + oneState + oneState + "\x00"}, find: oneState + oneState, plus: 8, path: sub + `operator state/state "s"`, msg: "duplicate state name"},
		{name: "repeated state, written otherwise", version: 4, fill: fill{managed: "\x04\x00\x00\x00\x02" + oneState + "\x00\x02\xc1\xb3\x01\x00\x00\x00\x00" + "\x00"}, find: oneState, plus: 8, path: sub + `operator state/state "s"`, msg: "duplicate state name"},
		{name: "expected scope 0 or 1 of a segment, found 2", version: 4, fill: fill{managed: noStates + "\x0f" + i8 + i8 + "\x00\x00\x00\x02\x00\x00\x00\x00"}, find: noStates + "\x0f", plus: 5 + 17, path: sub + "operator state", msg: "expected scope 0 or 1 of a segment, found 2"},
		{name: "coordinator in a file", version: 4, fill: fill{coordinator: "\x02" + i8 + "\x00\x01x"}, find: "\x02" + i8 + "\x00\x01x", plus: 0, path: "operator[0]", msg: "coordinator state is not stored inline"},
		{name: "not a changelog", version: 4, fill: fill{keyed: "\x0e" + rng + i8 + emptyList + "\x00\x00\x00\x01\x03" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00" + i8 + i8 + "\x00\x00"}, find: "\x00\x00\x00\x01\x03", plus: 0, path: sub + "keyed state", msg: "expected a changelog handle"},
		{name: "bad text", version: 4, fill: fill{managed: noStates + "\x01\x00\x02\xff\xfe" + emptyList}, find: "\x00\x02\xff\xfe", plus: 0, path: sub + "operator state", msg: "not modified UTF-8"},
		{name: "negative key groups", version: 4, fill: fill{keyed: "\x0b" + i8 + "\x00\x00" + "\x00\x00\x00\x00\xff\xff\xff\xff" + i8 + "\x00"}, find: "\xff\xff\xff\xff", plus: 0, path: sub + "keyed state", msg: "invalid range of -1 key groups"},
		{name: "packed channels too long", version: 6, fill: fill{input: "\x03" + "\x00\x00\x00\x00" + i8 + "\x00" + "\x00\x00\x00\x05" + "\x00\x00\x00\x00\x07"}, find: "\x00\x00\x00\x05\x00\x00\x00\x00\x07", plus: 8, path: sub + "input channels/channel handle[0]", msg: "1 bytes after the end of packed channels"},
		{name: "nested streams", version: 4, fill: fill{managed: noStates + strings.Repeat("\x03\x00\x00\x00\x00\x00\x00\x00\x00", 17) + "\x00"}, find: noStates, plus: 5 + 17*9, path: sub + "operator state", msg: "nested more than 16 deep", kind: format.ErrLimit},
		{name: "nested handles", version: 4, fill: fill{keyed: strings.Repeat("\x0e"+rng+i8+"\x00\x00\x00\x01", 17) + strings.Repeat("\x00", 500)}, find: "\x0e" + rng, plus: 17 * 21, path: sub + "keyed state" + strings.Repeat("/materialized handles[0]", 17), msg: "nested more than 16 deep", kind: format.ErrLimit},
	} {
		t.Run(x.name, func(t *testing.T) {
			file := smallest(x.version, x.fill)
			if x.kind == nil {
				x.kind = format.ErrCorrupt
			}
			e := refused(t, file, x.kind)
			at := 24 + int64(strings.Index(string(file[24:]), x.find)) + x.plus
			if e.Offset != at || e.Path != x.path || !strings.Contains(e.Msg, x.msg) {
				t.Errorf("got  @0x%x, %s: %s\nwant @0x%x, %s: … %s …", e.Offset, e.Path, e.Msg, at, x.path, x.msg)
			}
		})
	}
	// Not in handles.
	head := func(version int, rest string) []byte {
		var b sptest.Buf
		return b.I32(0x4960672d).I32(version).Hex(rest).B
	}
	op := "0000000000000001 0000000000000002 00000003 00000080"
	noState := "00000000 00000000 00 00 00000000 00000000" // after a subtask's index
	for _, x := range []struct {
		name   string
		file   []byte
		offset int64
		path   string
		msg    string
	}{
		{"magic", []byte("PK\x03\x04 and so on"), 0, "", "expected magic 4960672d, found 504b0304"},
		{"negative id", head(3, "8000000000000000 00000000 00000000"), 8, "", "checkpoint id -9223372036854775808 is negative"},
		{"master magic", head(3, "0000000000000001 00000001 c96b1697 0000000a 00000000 0000 00000000 00000000"), 20, "master state[0]", "expected magic c96b1696 of a master state, found c96b1697"},
		{"master too short", head(3, "0000000000000001 00000001 c96b1696 00000009 00000000 0000 00000000 00000000"), 24, "master state[0]", "expected a master state of 9 bytes, found 10"},
		{"master too long", head(3, "0000000000000001 00000001 c96b1696 0000000b 00000000 0000 00000000 00000000"), 24, "master state[0]", "expected a master state of 11 bytes, found 10"},
		{"master without length", head(3, "0000000000000001 00000001 c96b1696 00000000 00000000 0000 00000000 00000000"), 24, "master state[0]", "of 0 bytes"},
		{"two handles", head(3, "0000000000000001 00000000 00000001"+op+"00 00000001 00000000 00000002"+strings.Repeat("00", 40)), 24 + 24 + 5 + 4, "operator[0]/subtask 0/operator state", "expected at most one handle, found 2"},
		{"two raw handles", head(3, "0000000000000001 00000000 00000001"+op+"00 00000001 00000000 00000000 ffffffff"+strings.Repeat("00", 40)), 24 + 24 + 5 + 8, "operator[0]/subtask 0/raw operator state", "expected at most one handle, found -1"},
		{"repeated subtask", head(3, "0000000000000001 00000000 00000001"+op+"00 00000003 00000001"+noState+"00000000"+noState+"fffffffe"), 24 + 24 + 1, "operator[0]", "duplicate subtask 1"},
		{"negative subtask in version 2", head(2, "0000000000000001 00000000 00000001"+op+"00000001 00000001 fffffffe"+strings.Repeat("00", 40)), 24 + 24 + 8, "operator[0]/subtask -2", "subtask index -2"},
		{"finished with coordinator", head(3, "0000000000000001 00000000 00000001"+op+"01 0000 00000000 ffffffff"), 24 + 24 + 7, "operator[0]", "finished operator with coordinator state"},
		{"trailing bytes", head(3, "0000000000000001 00000000 00000000 00"), 24, "", "1 bytes after the end"},
		{"trailing bytes after properties", head(4, "0000000000000001 00000000 00000000 aced000570 00"), 29, "properties", "1 bytes after the end"},
		{"no properties object", head(4, "0000000000000001 00000000 00000000 aced000470"), 24, "properties", "not a Java object stream: it starts aced 0004"},
		{"properties that are an end mark", head(4, "0000000000000001 00000000 00000000 aced000578"), 28, "properties", "expected a Java object, found tag 0x78"},
	} {
		t.Run(x.name, func(t *testing.T) {
			e := refused(t, x.file, format.ErrCorrupt)
			if e.Offset != x.offset || e.Path != x.path || !strings.Contains(e.Msg, x.msg) {
				t.Errorf("got  @0x%x, %s: %s\nwant @0x%x, %s: … %s …", e.Offset, e.Path, e.Msg, x.offset, x.path, x.msg)
			}
		})
	}
}

// TestRefuseCounts: every count and length, claimed as -1 and as more than
// there is, is refused where it stands, before anything is allocated for it.
func TestRefuseCounts(t *testing.T) {
	const (
		sub = "operator[0]/subtask 0/"
		op4 = "\x04\x00\x00\x00\x00"
		rng = "\x00\x00\x00\x00\x00\x00\x00\x01"
		i8  = "\x00\x00\x00\x00\x00\x00\x00\x00"
		i4  = "\x00\x00\x00\x00"
	)
	file := func(version int, rest ...any) func(string) []byte {
		return func(count string) []byte {
			var b sptest.Buf
			b.I32(0x4960672d).I32(version)
			for _, r := range rest {
				if r == nil {
					b.Raw(count)
				} else {
					b.Raw(r.(string))
				}
			}
			return b.B
		}
	}
	in := func(version int, f func(count string) fill) func(string) []byte {
		return func(count string) []byte { return smallest(version, f(count)) }
	}
	id := strings.Repeat("\x11", 16)
	for _, x := range []struct {
		name, path string
		file       func(count string) []byte
		negativeOK bool
	}{
		{"master states", "", file(3, i8, nil, i4), false},
		{"master length", "master state[0]", file(3, i8, "\x00\x00\x00\x01\xc9\x6b\x16\x96", nil, i4, "\x00\x00", i4, i4), false},
		{"master data", "master state[0]", file(3, i8, "\x00\x00\x00\x01\xc9\x6b\x16\x96\x00\x00\x00\x0a", i4, "\x00\x00", nil, i4), false},
		{"operators", "", file(3, i8, i4, nil), false},
		{"subtasks", "operator[0]", file(3, i8, i4, "\x00\x00\x00\x01", id, i8, "\x00", nil), true},
		{"subtasks of version 2", "operator[0]", file(2, i8, i4, "\x00\x00\x00\x01", id, i8, i4, nil, i8, i8, i8, i8), false},
		{"legacy handles", sub + "legacy state", file(2, i8, i4, "\x00\x00\x00\x01", id, i8, i4, "\x00\x00\x00\x01", i4, i8, nil, i8, i8), false},
		{"coordinator", "operator[0]", in(4, func(c string) fill { return fill{coordinator: "\x01\x00\x00" + c} }), false},
		{"inline", sub + "operator state", in(4, func(c string) fill { return fill{managed: op4 + "\x01\x00\x00" + c} }), false},
		{"states", sub + "operator state", in(4, func(c string) fill { return fill{managed: "\x04" + c} }), false},
		{"offsets", sub + `operator state/state "s"`, in(4, func(c string) fill { return fill{managed: "\x04\x00\x00\x00\x01\x00\x01s\x00" + c} }), false},
		{"stream key groups", sub + "operator state", in(4, func(c string) fill { return fill{managed: op4 + "\x03" + i4 + c} }), false},
		{"key groups 3", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x03" + i4 + c} }), false},
		{"key groups 7", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x07" + i4 + c} }), false},
		{"key groups 12", sub + "raw keyed state", in(4, func(c string) fill { return fill{rawKeyed: "\x0c" + i4 + c} }), false},
		{"shared 5", sub + "keyed state/shared", in(4, func(c string) fill { return fill{keyed: "\x05" + i8 + "\x00\x00" + rng + "\x00" + c} }), false},
		{"private 11", sub + "keyed state/private", in(4, func(c string) fill { return fill{keyed: "\x0b" + i8 + "\x00\x00" + rng + i8 + "\x00" + i4 + c} }), false},
		{"materialized", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x0e" + rng + i8 + c} }), false},
		{"changelogs", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x08" + rng + i8 + i4 + c} }), false},
		{"changes", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x09" + rng + i8 + i8 + c} }), false},
		{"change", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x09" + rng + i8 + i8 + "\x00\x00\x00\x01" + i4 + c} }), false},
		{"changelog streams 10", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x0a" + rng + c} }), false},
		{"changelog streams 13", sub + "keyed state", in(4, func(c string) fill { return fill{keyed: "\x0d" + rng + c} }), false},
		{"input channels", sub + "input channels", file(4, i8, i4, "\x00\x00\x00\x01", id, i8, "\x00\x00\x00\x00\x01", i4, i8, "\x00\x00", nil, i4), false},
		{"output channels", sub + "output channels", file(4, i8, i4, "\x00\x00\x00\x01", id, i8, "\x00\x00\x00\x00\x01", i4, i8, "\x00\x00", i4, nil), false},
		{"channel offsets", sub + "input channels/channel handle[0]", in(4, func(c string) fill { return fill{input: i4 + i8 + c + i8} }), false},
		{"packed", sub + "output channels/channel handle[0]", in(6, func(c string) fill { return fill{output: "\x04" + i4 + i8 + "\x00" + c} }), false},
		{"packed channels", sub + "input channels/channel handle[0]", in(6, func(c string) fill { return fill{input: "\x03" + i4 + i8 + "\x00" + "\x00\x00\x00\x08" + c + i4} }), false},
		{"packed offsets", sub + "input channels/channel handle[0]", in(6, func(c string) fill {
			return fill{input: "\x03" + i4 + i8 + "\x00" + "\x00\x00\x00\x18" + "\x00\x00\x00\x01" + i8 + i8 + c}
		}), false},
	} {
		t.Run(x.name, func(t *testing.T) {
			negative, huge := x.file("\xff\xff\xff\xff"), x.file("\x7f\xff\xff\xff")
			at := int64(differ(negative, huge))
			if !x.negativeOK {
				checkClaim(t, negative, format.ErrCorrupt, at, x.path)
			}
			checkClaim(t, huge, format.ErrTruncated, at, x.path)
			checkClaim(t, x.file("\x00\x00\x40\x00"), format.ErrTruncated, at, x.path)
			// And with a megabyte behind it that such a count does not fit in.
			checkClaim(t, append(huge, make([]byte, 1<<20)...), format.ErrTruncated, at, x.path)
		})
	}
	for _, name := range []string{"\xff\xff", "\x00\x22"} {
		checkClaim(t, file(5, i8, i4, "\x00\x00\x00\x01", name, strings.Repeat("\x00", 33))(""), format.ErrTruncated, 24, "operator[0]")
	}
}

func checkClaim(t *testing.T, file []byte, kind error, offset int64, path string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e := refused(t, file, kind)
	runtime.ReadMemStats(&after)
	if e.Offset != offset || e.Path != path {
		t.Errorf("%v\nwant @0x%x, %s", e, offset, path)
	}
	if n, most := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+2*len(file)); n > most {
		t.Errorf("%v: %d bytes allocated for a file of %d", e, n, len(file))
	}
}

// TestLimits: what is within the limits is read, what is one over is not.
func TestLimits(t *testing.T) {
	operators := func(n, subtasks int) []byte {
		var b sptest.Buf
		b.I32(0x4960672d).I32(3).I64(1).I32(0).I32(n)
		for i := range n {
			b.I64(int64(i)).I64(2).I32(1).I32(128).U8(0).I32(subtasks)
			for s := range subtasks {
				b.I32(-s - 1)
			}
		}
		return b.B
	}
	deep := func(n int) []byte {
		return smallest(4, fill{managed: "\x04\x00\x00\x00\x00" + strings.Repeat("\x03\x00\x00\x00\x00\x00\x00\x00\x00", n) + "\x00"})
	}
	for _, x := range []struct {
		name   string
		file   func(n int) []byte
		at     int
		limits format.Limits
	}{
		{"operators", func(n int) []byte { return operators(n, 0) }, 10, format.Limits{Operators: 10}},
		{"subtasks", func(n int) []byte { return operators(2, n) }, 10, format.Limits{Subtasks: 10}},
		{"subtasks by default", func(n int) []byte { return operators(1, n) }, 32768, format.Limits{}},
		{"nodes", func(n int) []byte { return operators(1, n) }, 10, format.Limits{Nodes: 12}}, // with the operator and its coordinator
		{"depth", deep, 3, format.Limits{Depth: 3}},
		{"depth by default", deep, 16, format.Limits{}},
	} {
		for n := x.at - 1; n <= x.at+1; n++ {
			_, err := metadata.Decode(format.NewBytes(x.file(n)), metadata.Options{Limits: x.limits})
			if want := n > x.at; errors.Is(err, format.ErrLimit) != want || (err != nil) != want {
				t.Errorf("%s: %d of %d: %v", x.name, n, x.at, err)
			}
		}
	}
}
