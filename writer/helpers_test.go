package writer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// These tests are inside the package so that they share no names with those of
// the builder. They use what is exported, and nothing else.

var background = context.Background()

// stores routes local files, and other stores by scheme.
func stores(schemes ...any) storage.Resolver {
	r := route.New(local.New())
	for i := 0; i < len(schemes); i += 2 {
		name, store := schemes[i].(string), schemes[i+1].(storage.Storage)
		r.Add(name, func(_ context.Context, uri string) (storage.Storage, string, error) {
			_, rest, _ := strings.Cut(uri, "://")
			return store, rest, nil
		})
	}
	return r
}

// everywhere allows the references of all snapshots that these tests make.
func everywhere() []string { return []string{os.TempDir(), "in://", "mem://", "far://"} }

func openAt(t testing.TB, location string, s storage.Resolver) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(background, location, &reader.Options{Stores: s, Follow: everywhere()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snap.Close() })
	return snap
}

// sealAt opens, seals, and opens the result.
func sealAt(t testing.TB, in, out string, o Options) (*Report, *reader.Snapshot) {
	t.Helper()
	r, err := Write(background, openAt(t, in, o.Stores).View(), out, &o)
	if err != nil {
		t.Fatalf("%s to %s: %v", in, out, err)
	}
	return r, openAt(t, out, o.Stores)
}

// sound fails unless verify has nothing to say.
func sound(t testing.TB, snap *reader.Snapshot) *reader.Verification {
	t.Helper()
	v, err := snap.Verify(background, reader.VerifyOptions{Read: true, DescriptionOnly: true}, func(f finding.Finding) { t.Errorf("%s: %+v", snap.Location, f) })
	if err != nil {
		t.Errorf("%s: %v", snap.Location, err)
	}
	return v
}

// streamsOf is the places and the bytes of all streams that have any.
func streamsOf(t testing.TB, snap *reader.Snapshot) (all []string) {
	t.Helper()
	err := snap.EachStream(func(p format.Place, s format.Stream) error {
		n := s.Size()
		if sizer, ok := snap.Source().(format.Sizer); ok {
			var err error
			if n, err = sizer.SizeOf(background, s); err != nil {
				return err
			}
		}
		if _, empty := s.(*format.EmptySegment); empty {
			return nil
		}
		data := make([]byte, n)
		if _, err := snap.Source().ReadAt(background, s, data, 0); err != nil {
			return err
		}
		all = append(all, fmt.Sprintf("%s: %d %x", p, n, sha256.Sum256(data)))
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", snap.Location, err)
	}
	return all
}

// sameStreams fails unless two snapshots hold the same bytes at the same places.
func sameStreams(t testing.TB, got, want *reader.Snapshot) int {
	t.Helper()
	a, b := streamsOf(t, got), streamsOf(t, want)
	if !slices.Equal(a, b) {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("%s: stream %d:\n %s\n %s", want.Location, i, a[i], b[i])
				break
			}
		}
		t.Errorf("%s: %d streams, want %d", want.Location, len(a), len(b))
	}
	return len(a)
}

// tree is everything under a folder: names, kinds, times, contents.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := fmt.Sprint(info.Mode(), info.ModTime().UnixNano())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " " + to
		case info.Mode().IsRegular():
			p, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %d %x", len(p), sha256.Sum256(p))
		}
		all[strings.TrimPrefix(path, dir)] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unchanged runs f and fails if a folder is not as it was.
func unchanged(t testing.TB, dir string, f func()) {
	t.Helper()
	before := tree(t, dir)
	f()
	if after := tree(t, dir); !maps.Equal(before, after) {
		for name := range after {
			if before[name] == after[name] {
				delete(after, name)
				delete(before, name)
			}
		}
		t.Errorf("the input changed:\n %.500s\n %.500s", fmt.Sprint(before), fmt.Sprint(after))
	}
}

// files is the files of a folder with their contents.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		p, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(p)
	}
	return all
}

// objects is the same of a store, below a prefix.
func objects(t testing.TB, s storage.Storage, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range storetest.Names(t, s, prefix, "") {
		all[strings.TrimPrefix(name, prefix)] = storetest.Read(t, s, name)
	}
	return all
}

func names[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func text(s string) format.Text { return format.NewText(s) }

func relative(name string, n int) *format.File {
	return &format.File{Path: text(name), Relative: true, Length: int64(n)}
}

func absoluteFile(path string, n int) *format.File {
	return &format.File{Path: text(path), Length: int64(n)}
}

func inlined(p string) *format.Inline {
	return &format.Inline{Name: text("file:/somewhere/else"), Data: format.NewBytes([]byte(p))}
}

func handleOf(data format.Stream, offsets ...int64) *format.OperatorHandle {
	return &format.OperatorHandle{Codec: format.CodecFlink, Data: data, States: []format.NamedState{{Name: text("items"), Offsets: format.OffsetSlice(offsets)}}}
}

// modelOf has one operator, and one subtask for each handle.
func modelOf(handles ...*format.OperatorHandle) *format.Savepoint {
	op := &format.Operator{Name: text("op"), UID: text("uid"), ID: format.OperatorIDOf("uid"), Parallelism: int32(max(1, len(handles))), MaxParallelism: 128}
	for i, h := range handles {
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: h})
	}
	return &format.Savepoint{ID: 7, Kind: format.SnapshotKind{Type: format.TypeCheckpoint}, Operators: []*format.Operator{op}}
}

func encoded(t testing.TB, sp *format.Savepoint) string {
	t.Helper()
	var b bytes.Buffer
	if err := metadata.Encode(background, &b, sp, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// folderOf writes files below a new folder, and gives the folder.
func folderOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		putFile(t, dir+"/"+name, data)
	}
	return dir
}

func putFile(t testing.TB, name, data string) {
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

// noise is n bytes that do not compress.
func noise(seed uint64, n int) string {
	p := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(p) //nolint:errcheck // never fails
	return string(p)
}

// hooks wraps a store with a look at each request, and at each write; an error
// is the answer then.
type hooks struct {
	storage.Storage
	before func(op, name string) error
}

func (h hooks) err(op, name string) error {
	if err := h.before(op, name); err != nil {
		return &storage.Error{Op: op, Name: name, Err: err}
	}
	return nil
}

func (h hooks) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	if err := h.err("read", name); err != nil {
		return nil, storage.Info{}, err
	}
	return h.Storage.ReadRange(ctx, name, off, n, pin)
}

func (h hooks) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if err := h.err("create", name); err != nil {
		return nil, err
	}
	w, err := h.Storage.Create(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return &hookedWriter{w, h, name}, nil
}

type hookedWriter struct {
	storage.Writer
	h    hooks
	name string
}

func (w *hookedWriter) Write(p []byte) (int, error) {
	if err := w.h.err("write", w.name); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

func (w *hookedWriter) Commit(ctx context.Context) (storage.Info, error) {
	if err := w.h.err("commit", w.name); err != nil {
		return storage.Info{}, err
	}
	return w.Writer.Commit(ctx)
}

// refusedTarget fails unless an error is a refused target that says why.
func refusedTarget(t testing.TB, err error, why string) {
	t.Helper()
	var target *TargetError
	if !errors.As(err, &target) || !strings.Contains(err.Error(), why) || target.Remedies() == nil {
		t.Errorf("error %v, want a refused target: %s", err, why)
	}
}

// unavailable is a store that does not answer.
type unavailable struct{ storage.Storage }

func (unavailable) Stat(_ context.Context, name string) (storage.Info, error) {
	return storage.Info{}, &storage.Error{Op: "stat", Name: name, Err: storage.ErrUnavailable}
}

// moving is hooks around a local store, with what that can do beyond others.
type moving struct {
	*local.Store
	before func(op, name string) error
}

func (m moving) hooks() hooks { return hooks{m.Store, m.before} }

func (m moving) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	return m.hooks().Create(ctx, name, o)
}

func (m moving) Move(ctx context.Context, old, to string) error {
	if err := m.hooks().err("move", old); err != nil {
		return err
	}
	return m.Store.Move(ctx, old, to)
}

// full has room for ten bytes.
type full struct{ moving }

func (full) FreeSpace(context.Context, string) (int64, error) { return 10, nil }

func readerOf(location string, o Options) (*reader.Snapshot, error) {
	return reader.Open(background, location, &reader.Options{Stores: o.Stores, Follow: everywhere()})
}

// prefixed is a store whose names are below a folder of another.
type prefixed struct {
	storage.Storage
	prefix string
}

func (p prefixed) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	return p.Storage.ReadRange(ctx, p.prefix+name, off, n, pin)
}

func (p prefixed) Stat(ctx context.Context, name string) (storage.Info, error) {
	return p.Storage.Stat(ctx, p.prefix+name)
}

// switching reads the description from one store and all else from another.
type switching struct {
	storage.Storage
	states storage.Storage
}

// Canonical makes it a store of local files.
func (s switching) Canonical(ctx context.Context, name string) (string, error) {
	return s.Storage.(ability.Canonicalizer).Canonical(ctx, name)
}

func (s switching) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	if strings.HasSuffix(name, reader.MetadataName) {
		return s.Storage.ReadRange(ctx, name, off, n, pin)
	}
	return s.states.ReadRange(ctx, name, off, n, pin)
}

// spoiling flips a bit of each object but _metadata, on its way in.
type spoiling struct{ storage.Storage }

func (s spoiling) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	w, err := s.Storage.Create(ctx, name, o)
	if err != nil || strings.HasSuffix(name, reader.MetadataName) {
		return w, err
	}
	return &spoilingWriter{Writer: w}, nil
}

type spoilingWriter struct {
	storage.Writer
	seen int
}

func (w *spoilingWriter) Write(p []byte) (int, error) {
	const at = 5000
	if w.seen <= at && at < w.seen+len(p) {
		c := bytes.Clone(p)
		c[at-w.seen] ^= 4
		p = c
	}
	w.seen += len(p)
	return w.Writer.Write(p)
}

// lateMover does every rename, and reports the n-th as failed.
type lateMover struct {
	moving
	n int
}

func (l *lateMover) Move(ctx context.Context, old, to string) error {
	if err := l.moving.Move(ctx, old, to); err != nil {
		return err
	}
	if l.n--; l.n == 0 {
		return &storage.Error{Op: "move", Name: old, Err: errDisk}
	}
	return nil
}

// Exchange is not there, so that it moves twice.
func (l *lateMover) Exchange(context.Context, string, string) error {
	return &storage.Error{Op: "exchange", Err: storage.ErrUnsupported}
}

// lateExchanger exchanges, and reports the n-th as failed.
type lateExchanger struct {
	moving
	n int
}

func (l *lateExchanger) Exchange(ctx context.Context, a, b string) error {
	if err := l.moving.Exchange(ctx, a, b); err != nil {
		return err
	}
	if l.n--; l.n == 0 {
		return &storage.Error{Op: "exchange", Name: b, Err: errDisk}
	}
	return nil
}
