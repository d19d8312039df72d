package spt_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
)

// filler sets every field of the model to something that is not zero and not
// the same twice, by reflection: a field that is new in the model is tested
// without anybody thinking of it.
type filler struct {
	n     int
	depth int
}

func (f *filler) next() int {
	f.n++
	return f.n
}

func (f *filler) fill(v reflect.Value) {
	switch v.Interface().(type) {
	case format.Text:
		n := f.next()
		if n%2 == 0 {
			v.Set(reflect.ValueOf(format.RawText(fmt.Sprintf("text\x00 %d", n), fmt.Sprintf("raw\xc0\x80 %d", n))))
		} else {
			v.Set(reflect.ValueOf(format.NewText(fmt.Sprintf("text %d é\x80", n))))
		}
		return
	case format.Bytes:
		v.Set(reflect.ValueOf(format.NewBytes(fmt.Appendf(nil, "bytes %d", f.next()))))
		return
	case format.SnapshotType:
		v.SetUint(uint64(format.TypeSuspendSavepoint))
		return
	case format.SavepointFormat:
		v.SetUint(uint64(format.FormatNative))
		return
	case format.OperatorID:
		v.Set(reflect.ValueOf(format.OperatorIDOf(fmt.Sprint(f.next()))))
		return
	}
	switch v.Type() {
	case reflect.TypeFor[format.Offsets]():
		o := format.OffsetSlice{int64(f.next()), 3, -1 << 63, 1<<63 - 1}
		if f.next()%2 == 0 {
			for i := range 100 + f.n%7*300 {
				o = append(o, int64(i*i)<<(i%23))
			}
		}
		v.Set(reflect.ValueOf(o))
		return
	case reflect.TypeFor[format.Stream]():
		v.Set(reflect.ValueOf(f.stream()))
		return
	case reflect.TypeFor[format.KeyedHandle]():
		v.Set(reflect.ValueOf(f.keyed()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
		f.legal(v.Addr().Interface())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			f.fill(v.Index(i))
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("string %d", f.next()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		n := int64(f.next())
		switch n % 3 {
		case 0:
			n = -n
		case 1:
			n = 1<<(v.Type().Bits()-1) - n
		}
		v.SetInt(n)
	case reflect.Uint8:
		v.SetUint(uint64(f.next() % 256))
	default:
		panic(v.Type())
	}
}

// legal gives fields that depend on others, or that have few values, values that
// a file may hold.
func (f *filler) legal(v any) {
	groups := func(o format.Offsets) (format.KeyGroupRange, format.Offsets) {
		n := min(o.Len(), 4)
		return format.KeyGroupRange{First: int32(f.next()), Count: int32(n)}, o.(format.OffsetSlice)[:n]
	}
	switch v := v.(type) {
	case *format.Savepoint:
		v.ID &= math.MaxInt64
	case *format.Operator:
		v.Parallelism, v.MaxParallelism = int32(f.next()%1000), int32(1000+f.next()%1000)
		if v.Finished = f.next()%5 == 0; v.Finished {
			v.Coordinator, v.Subtasks = nil, nil
		}
	case *format.Subtask:
		v.Index = int32(f.next())
		if v.Raw != nil {
			v.Raw.Codec = format.CodecRaw
		}
		f.raw(v.RawKeyed)
		if v.Finished = f.next()%7 == 0; v.Finished {
			*v = format.Subtask{Index: v.Index, Finished: true, Wire: v.Wire}
		}
	case *format.OperatorHandle:
		v.Codec = format.CodecFlink
	case *format.NamedState:
		v.Mode %= 3
	case *format.KeyGroups:
		v.Codec = format.CodecFlink
		v.Range, v.Offsets = groups(v.Offsets)
	case *format.KeyGroupStream:
		v.Range, v.Offsets = groups(v.Offsets)
	case *format.Changelog:
		v.Changes = []format.KeyedHandle{nil, &format.ChangelogMemory{From: int64(f.next())}, &format.ChangelogStream{StateSize: int64(f.next())}}
	case *format.ChannelHandle:
		if v.Merged = f.next()%2 == 0; !v.Merged {
			v.Channels = v.Channels[:1]
		}
	case *format.KeyGroupRange:
		*v = format.KeyGroupRange{First: int32(f.next()), Count: int32(f.next() % 100)}
	}
}

// raw makes the key groups of a handle those of raw state.
func (f *filler) raw(h format.KeyedHandle) {
	switch h := h.(type) {
	case *format.KeyGroups:
		h.Codec = format.CodecRaw
	case *format.Changelog:
		for _, m := range h.Materialized {
			f.raw(m)
		}
	}
}

func (f *filler) stream() format.Stream {
	n := f.next()
	switch n % 6 {
	case 0:
		return &format.File{Path: format.NewText(fmt.Sprintf("file:/a/%d", n%4)), Length: int64(n) - 20}
	case 1:
		return &format.Segment{Path: format.NewText("s3://b/c"), Start: int64(n), Length: 7, Scope: format.ScopeShared, LogicalID: format.RawText("l", "\xc0\x80")}
	case 2:
		return &format.EmptySegment{}
	case 3:
		if f.depth < 2 {
			f.depth++
			s := &format.KeyGroupStream{}
			f.fill(reflect.ValueOf(s).Elem())
			f.depth--
			return s
		}
	case 4:
		return &format.Concat{As: inline("wish", nil), Parts: []format.Part{
			format.Literal([]byte("one ")), {Of: inline("x", []byte("..two..")), Off: 2, N: 3}}}
	}
	return inline(fmt.Sprint("inline ", n), fmt.Appendf(nil, "content %d", n%20))
}

func (f *filler) keyed() format.KeyedHandle {
	all := []format.KeyedHandle{
		&format.KeyGroups{}, &format.Incremental{}, &format.Changelog{}, &format.ChangelogMemory{}, &format.ChangelogStream{}}
	h := all[f.next()%len(all)]
	if f.depth > 3 {
		h = &format.KeyGroups{}
	}
	f.depth++
	f.fill(reflect.ValueOf(h).Elem())
	f.depth--
	return h
}

// everything is a savepoint with all that the model has.
func everything() *format.Savepoint {
	sp := &format.Savepoint{}
	(&filler{}).fill(reflect.ValueOf(sp).Elem())
	// Each kind of keyed handle, and the nil that a changelog may hold.
	log := &format.Changelog{Materialized: []format.KeyedHandle{nil}, Changes: []format.KeyedHandle{nil, nil}}
	s := &format.Subtask{ManagedKeyed: log, Legacy: []format.Stream{nil, inline("l", nil), nil}, Managed: &format.OperatorHandle{Merging: &format.FileMerging{}}}
	for i := range 5 {
		h := (&filler{n: i + 1}).keyed()
		log.Materialized = append(log.Materialized, h)
	}
	sp.Operators = append(sp.Operators, &format.Operator{Subtasks: []*format.Subtask{s, {Index: 1}}}, &format.Operator{})
	return sp
}

func TestEverythingInTheModel(t *testing.T) {
	sp := everything()
	kinds := make(map[string]bool)
	var walk func(format.KeyedHandle)
	walk = func(h format.KeyedHandle) {
		kinds[fmt.Sprintf("%T", h)] = true
		if log, ok := h.(*format.Changelog); ok {
			for _, m := range append(append([]format.KeyedHandle{}, log.Materialized...), log.Changes...) {
				walk(m)
			}
		}
	}
	for _, o := range sp.Operators {
		for _, s := range o.Subtasks {
			walk(s.ManagedKeyed)
			walk(s.RawKeyed)
		}
	}
	if len(kinds) != 6 { // and nil
		t.Fatalf("not every kind of keyed handle is tested: %v", kinds)
	}
	for _, o := range []spt.Options{{}, {Compression: spt.S2}, {Compression: spt.None}} {
		p := pack(t, sp, source{}, o)
		f := mustOpen(t, p)
		sameModel(t, f, sp, source{})
		verify(t, f)
	}
}

func verify(t testing.TB, f *spt.File) {
	t.Helper()
	if err := f.Verify(context.Background(), func(e format.Error) { t.Error(&e) }); err != nil {
		t.Error(err)
	}
}

func TestEmptySavepoint(t *testing.T) {
	for _, sp := range []*format.Savepoint{{}, {ID: 7, Operators: []*format.Operator{{}}}} {
		p := pack(t, sp, source{}, spt.Options{})
		f := mustOpen(t, p)
		sameModel(t, f, sp, source{})
		verify(t, f)
		if st := f.Stats(); st.Chunks != 0 || st.StoredBytes != 0 || st.FileBytes != int64(len(p)) || st.Writer != "spt" {
			t.Errorf("%+v", st)
		}
	}
}

func TestSameBytesWithAnyJobs(t *testing.T) {
	sp, _ := inflated(3, 30_000)
	sp.Operators = append(sp.Operators, everything().Operators...)
	for i := range 6 {
		sp.Operators[0].Subtasks[0].Legacy = append(sp.Operators[0].Subtasks[0].Legacy, inline("noise", noise(uint64(i), 700_000)))
	}
	for _, c := range []spt.Compression{spt.Zstd, spt.S2, spt.None} {
		one := pack(t, sp, source{}, spt.Options{Compression: c, Jobs: 1})
		for _, jobs := range []int{1, 4, 0} {
			if p := pack(t, sp, source{}, spt.Options{Compression: c, Jobs: jobs}); !bytes.Equal(p, one) {
				t.Errorf("%s: %d jobs give other bytes than 1", c, jobs)
			}
		}
	}
}

func TestCopiesAreStoredOnce(t *testing.T) {
	one, _ := inflated(1, 5000)
	many, n := inflated(50, 5000)
	p1, p50 := pack(t, one, source{}, spt.Options{}), pack(t, many, source{}, spt.Options{})
	if len(p50) > len(p1)+2000 {
		t.Errorf("50 copies take %d bytes, one takes %d", len(p50), len(p1))
	}
	st := mustOpen(t, p50).Stats()
	if st.ReferencedBytes < n || st.RawBytes > n/40 {
		t.Errorf("%+v", st)
	}
}

func TestFilesAreReadOncePerKey(t *testing.T) {
	file := func(path string) *format.File { return &format.File{Path: format.NewText(path), Length: 300_000} }
	named := func(s format.Stream) format.NamedStream { return format.NamedStream{Data: s} }
	sp := &format.Savepoint{Operators: []*format.Operator{{Subtasks: []*format.Subtask{{ManagedKeyed: &format.Incremental{
		Meta:   file("s3://b/y"),
		Shared: []format.NamedStream{named(file("s3://b/x")), named(file("s3a://b/x")), named(file("s3://b/x")), named(file("s3://b/y"))},
	}}}}}}
	src := &countingSource{}
	var b bytes.Buffer
	sealed, st, err := spt.Write(context.Background(), &b, sp, src, nil, spt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if src.bytes != 600_000 {
		t.Errorf("%d bytes were read of 2 files of 300,000 under 3 names", src.bytes)
	}
	if st.Streams != 3 {
		t.Errorf("%d streams in the table for 3 names", st.Streams)
	}
	shared := sealed.Operators[0].Subtasks[0].ManagedKeyed.(*format.Incremental).Shared
	for i, want := range []string{"s3://b/x", "s3a://b/x", "s3://b/x", "s3://b/y"} {
		c := shared[i].Data.(*format.Chunks)
		if path, _, _ := format.Reference(c.As); path.String() != want {
			t.Errorf("file %d came from %q, and is said to come from %q", i, want, path)
		}
	}
	if shared[0].Data.Key() != shared[1].Data.Key() {
		t.Error("one file under two spellings has two keys")
	}
}

// countingSource gives bytes of the path, and counts them.
type countingSource struct{ bytes int64 }

func (s *countingSource) ReadAt(_ context.Context, st format.Stream, p []byte, off int64) (int, error) {
	key := st.Key().String()
	for i := range p {
		p[i] = key[(off+int64(i))%int64(len(key))]
	}
	s.bytes += int64(len(p))
	return len(p), nil
}
