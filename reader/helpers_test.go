package reader_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

var ctx = context.Background()

// options for local files, and for stores by scheme.
func options(schemes ...any) reader.Options {
	r := route.New(local.New())
	for i := 0; i < len(schemes); i += 2 {
		name, store := schemes[i].(string), schemes[i+1].(storage.Storage)
		r.Add(name, func(_ context.Context, uri string) (storage.Storage, string, error) {
			_, rest, _ := strings.Cut(uri, "://")
			return store, rest, nil
		})
	}
	return reader.Options{Stores: r}
}

func open(t testing.TB, location string, o reader.Options) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(ctx, location, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snap.Close() })
	return snap
}

func verify(t testing.TB, snap *reader.Snapshot) (*reader.Verification, []finding.Finding) {
	t.Helper()
	var found []finding.Finding
	v, err := snap.Verify(ctx, reader.VerifyOptions{Read: true}, func(f finding.Finding) { found = append(found, f) })
	if err != nil {
		t.Fatal(err)
	}
	return v, found
}

// described verifies what is said of a snapshot whose streams hold text.
func described(t testing.TB, snap *reader.Snapshot) (*reader.Verification, []finding.Finding) {
	t.Helper()
	var found []finding.Finding
	v, err := snap.Verify(ctx, reader.VerifyOptions{Read: true, DescriptionOnly: true}, func(f finding.Finding) { found = append(found, f) })
	if err != nil {
		t.Fatal(err)
	}
	return v, found
}

func codes(found []finding.Finding) (codes []string) {
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return codes
}

// Models, and their bytes.

func text(s string) format.Text { return format.NewText(s) }

func relative(name string, n int64) *format.File {
	return &format.File{Path: text(name), Relative: true, Length: n}
}

func absolute(path string, n int64) *format.File { return &format.File{Path: text(path), Length: n} }

func inline(p string) *format.Inline {
	return &format.Inline{Name: text("file:/somewhere/else"), Data: format.NewBytes([]byte(p))}
}

// list is a handle with one list state whose elements start at the offsets.
func list(data format.Stream, offsets ...int64) *format.OperatorHandle {
	return &format.OperatorHandle{Codec: format.CodecFlink, Data: data, States: []format.NamedState{{Name: text("items"), Offsets: format.OffsetSlice(offsets)}}}
}

// model has one operator, and one subtask for each handle.
func model(handles ...*format.OperatorHandle) *format.Savepoint {
	op := &format.Operator{Name: text("op"), UID: text("uid"), ID: format.OperatorIDOf("uid"), Parallelism: int32(max(1, len(handles))), MaxParallelism: 128}
	for i, h := range handles {
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: h})
	}
	return &format.Savepoint{ID: 7, Kind: format.SnapshotKind{Type: format.TypeCheckpoint}, Operators: []*format.Operator{op}}
}

func encode(t testing.TB, sp *format.Savepoint) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := metadata.Encode(ctx, &b, sp, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pack makes an .spt of a model whose streams are all inline.
func pack(t testing.TB, sp *format.Savepoint) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, _, err := spt.Write(ctx, &b, sp, inlineSource{}, nil, spt.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type inlineSource struct{}

func (inlineSource) ReadAt(_ context.Context, s format.Stream, p []byte, off int64) (int, error) {
	return s.(*format.Inline).Data.ReadAt(p, off)
}

// write writes files below a new folder, and gives the folder.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		put(t, dir+"/"+name, data)
	}
	return dir
}

func put(t testing.TB, name, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, "/") {
		return
	}
	if err := os.WriteFile(name, []byte(data), 0o666); err != nil {
		t.Fatal(err)
	}
}

// inMemory puts objects into a store.
func inMemory(t testing.TB, files map[string]string) *mem.Store {
	t.Helper()
	s := mem.New()
	for name, data := range files {
		replace(t, s, name, data)
	}
	return s
}

func replace(t testing.TB, s storage.Storage, name, data string) {
	t.Helper()
	w, err := s.Create(ctx, name, storage.CreateOptions{})
	if err == nil {
		_, err = io.WriteString(w, data)
	}
	if err == nil {
		_, err = w.Commit(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// content is the whole of a stream.
func content(t testing.TB, snap *reader.Snapshot, s format.Stream) string {
	t.Helper()
	n := s.Size()
	if sizer, ok := snap.Source().(format.Sizer); ok {
		var err error
		if n, err = sizer.SizeOf(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	p := make([]byte, n)
	if _, err := snap.Source().ReadAt(ctx, s, p, 0); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// is fails unless an error is of all kinds, says the text and gives the hint.
func is(t testing.TB, err error, message, hint string, kinds ...error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, kind := range kinds {
		if !errors.Is(err, kind) {
			t.Errorf("%v is not %v", err, kind)
		}
	}
	if !strings.Contains(err.Error(), message) {
		t.Errorf("message %q, want %q in it", err, message)
	}
	if got := remedies(err); hint == "" && got != "" || !strings.Contains(got, hint) {
		t.Errorf("hint %q, want %q in it", got, hint)
	}
	if strings.ContainsFunc(err.Error()+remedies(err), func(r rune) bool { return r < ' ' }) {
		t.Errorf("control characters in %q, %q", err, remedies(err))
	}
}

// hooked asks a function before each request; an error is the answer then.
type hooked struct {
	storage.Storage
	before func(op, name string) error
}

func (h hooked) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	if err := h.before("read", name); err != nil {
		return nil, storage.Info{}, &storage.Error{Op: "read", Name: name, Err: err}
	}
	return h.Storage.ReadRange(ctx, name, off, n, pin)
}

func (h hooked) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := h.before("stat", name); err != nil {
		return storage.Info{}, &storage.Error{Op: "stat", Name: name, Err: err}
	}
	return h.Storage.Stat(ctx, name)
}

func (h hooked) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	if err := h.before("list", prefix); err != nil {
		return func(yield func(storage.Info, error) bool) {
			yield(storage.Info{}, &storage.Error{Op: "list", Name: prefix, Err: err})
		}
	}
	return h.Storage.List(ctx, prefix, delimiter)
}

// near makes a store look like the local file system, of which a request costs next to
// nothing.
type near struct{ storage.Storage }

func (n near) Canonical(_ context.Context, name string) (string, error) { return name, nil }

// counted counts the bytes that are read of a store.
type counted struct {
	storage.Storage
	n *atomic.Int64
}

func (c counted) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	body, info, err := c.Storage.ReadRange(ctx, name, off, n, pin)
	if err == nil {
		body = countedBody{body, c.n}
	}
	return body, info, err
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// remedies is what can be done about an error, as text.
func remedies(err error) string {
	var all []string
	for _, m := range reader.Remedies(err) {
		all = append(all, m.String())
	}
	return strings.Join(all, "; ")
}
