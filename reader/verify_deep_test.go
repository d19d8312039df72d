package reader_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	flinkkeyed "github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// deep verifies a snapshot with its entries.
func deep(t testing.TB, snap *reader.Snapshot, jobs int) (*reader.Verification, []finding.Finding) {
	t.Helper()
	var found []finding.Finding
	v, err := snap.Verify(ctx, reader.VerifyOptions{Deep: true, Jobs: jobs}, func(f finding.Finding) { found = append(found, f) })
	if err != nil {
		t.Fatal(err)
	}
	return v, found
}

// TestVerifyDeepKnown: snapshots by real Flink, in every encoding, are sound.
func TestVerifyDeepKnown(t *testing.T) {
	entries, outside := int64(0), 0
	for _, k := range testenv.KnownSnapshots(t) {
		snap := open(t, k.Location, options())
		v, found := deep(t, snap, 1)
		entries += v.Entries
		for _, f := range found {
			if f.Code == "key-groups-outside" {
				outside++
			}
			if f.Severity == finding.Error || slices.Contains([]string{"key-misplaced", "not-decoded", "column-family", "wal", "table-unused"}, f.Code) {
				t.Errorf("%s: %+v", k.Name, f)
			}
		}
		again, more := deep(t, snap, 5)
		if again.Entries != v.Entries || !slices.Equal(codes(found), codes(more)) {
			t.Errorf("%s: 5 jobs: %d entries, %v; one: %d, %v", k.Name, again.Entries, codes(more), v.Entries, codes(found))
		}
	}
	testenv.Some(t, "entries of keyed state that were checked", int(entries), entries > 0)
	if outside == 0 {
		t.Log("no snapshot has entries of other key groups")
	}
}

// incremental returns the operator and the first handle of a fixture in RocksDB's files.
func incremental(t testing.TB, sp *format.Savepoint) (*format.Operator, *format.Incremental) {
	t.Helper()
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if h, ok := sub.ManagedKeyed.(*format.Incremental); ok {
				return op, h
			}
		}
	}
	t.Fatal("no incremental state")
	return nil, nil
}

// changed opens a checkpoint of RocksDB next to its files, after edit has changed the
// first handle of its model.
func changed(t *testing.T, edit func(h *format.Incremental)) *reader.Snapshot {
	t.Helper()
	file := filepath.Join(copied(t, filepath.Dir(testenv.Fixture(t, "sp-003"))), "chk-3", "_metadata")
	snap, err := reader.Open(ctx, filepath.Dir(file), new(options()))
	if err != nil {
		t.Fatal(err)
	}
	_, h := incremental(t, snap.Savepoint)
	edit(h)
	p := encode(t, snap.Savepoint)
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, p, 0o666); err != nil {
		t.Fatal(err)
	}
	return open(t, filepath.Dir(file), options())
}

// TestVerifyDeepDatabases: what is wrong with a database as a whole.
func TestVerifyDeepDatabases(t *testing.T) {
	named := func(name, data string) format.NamedStream {
		return format.NamedStream{Name: text(name), Data: inline(data)}
	}
	for _, tt := range []struct {
		name     string
		edit     func(h *format.Incremental)
		severity finding.Severity
		code     string
		message  string
	}{
		{"a log", func(h *format.Incremental) { h.Private = append(h.Private, named("000099.log", "x")) }, finding.Warning, "wal", "000099.log"},
		{"an empty log", func(h *format.Incremental) { h.Private = append(h.Private, named("000099.log", "")) }, "", "", ""},
		{"a table that is not live", func(h *format.Incremental) { h.Private = append(h.Private, named("999999.sst", "x")) }, finding.Note, "table-unused", "999999.sst"},
		{"a table less", func(h *format.Incremental) {
			i := slices.IndexFunc(h.Shared, func(s format.NamedStream) bool { return strings.HasSuffix(s.Name.String(), ".sst") })
			h.Shared = slices.Delete(slices.Clone(h.Shared), i, i+1)
		}, finding.Error, "unreadable", "which is not among the files of its handle"},
		{"no MANIFEST", func(h *format.Incremental) {
			h.Private = slices.DeleteFunc(slices.Clone(h.Private), func(s format.NamedStream) bool { return strings.HasPrefix(s.Name.String(), "MANIFEST") })
		}, finding.Error, "unreadable", "MANIFEST"},
	} {
		_, found := deep(t, changed(t, tt.edit), 3)
		found = slices.DeleteFunc(found, func(f finding.Finding) bool { return f.Code == "file-elsewhere" || f.Code == "orphan" })
		if tt.code == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Severity != tt.severity || found[0].Code != tt.code || !strings.Contains(found[0].Message, tt.message) {
			t.Errorf("%s: %+v", tt.name, found)
		}
	}
}

// TestVerifyDeepNames: a header that describes another state than the database has.
func TestVerifyDeepNames(t *testing.T) {
	snap := changed(t, func(h *format.Incremental) {
		p := []byte(headerOf(t, h))
		if bytes.Count(p, []byte("\x00\x05words")) != 1 {
			t.Fatal("no state words")
		}
		h.Meta = inline(strings.Replace(string(p), "\x00\x05words", "\x00\x05wordz", 1))
	})
	_, found := deep(t, snap, 2)
	var got []string
	for _, f := range found {
		if f.Code == "column-family" || f.Code == "unreadable" {
			got = append(got, string(f.Severity)+" "+f.Message)
		}
	}
	slices.Sort(got)
	want := []string{
		`error the database has no column family for state "wordz"`,
		`warning the database has a column family "words", and no state of this name is described`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// headerOf reads the header of a handle, which is in a file of the fixture or inline.
func headerOf(t *testing.T, h *format.Incremental) string {
	t.Helper()
	snap := open(t, testenv.Fixture(t, "sp-003"), options())
	p := make([]byte, h.Meta.Size())
	if _, err := snap.Source().ReadAt(ctx, h.Meta, p, 0); err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// TestVerifyDeepMisplaced: keys of type long in another key group than their hash code
// says (FLINK-40113). Key groups of the fixture are Flink's own.
func TestVerifyDeepMisplaced(t *testing.T) {
	snap := open(t, testenv.Fixture(t, "sp-003"), options())
	op, h := incremental(t, snap.Savepoint)
	codec := &flinkkeyed.Codec{MaxParallelism: op.MaxParallelism}
	schema, err := codec.Describe(ctx, snap.Source(), h)
	if err != nil {
		t.Fatal(err)
	}
	var all []format.KeyedEntry
	err = format.EachKeyedEntry(ctx, snap.Source(), codec, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
		all = append(all, e.Clone())
		return nil
	})
	if err != nil || len(all) < 5 {
		t.Fatalf("%d entries: %v", len(all), err)
	}
	for _, tt := range []struct {
		name   string
		move   func(i int) bool
		expect string
	}{
		{"none", func(int) bool { return false }, ""},
		{"one", func(i int) bool { return i == 3 }, "error"},
		{"all", func(int) bool { return true }, "warning"},
	} {
		var moved []format.KeyedEntry
		count := 0
		for i, e := range all {
			e = e.Clone()
			if tt.move(i) { // into the last key group of the handle, or the first
				to := h.Range.Last()
				if e.KeyGroup == to {
					to = h.Range.First
				}
				e.KeyGroup, e.Stored[0] = to, byte(to)
				count++
			}
			moved = append(moved, e)
		}
		slices.SortStableFunc(moved, func(a, b format.KeyedEntry) int {
			if a.KeyGroup != b.KeyGroup {
				return int(a.KeyGroup - b.KeyGroup)
			}
			return a.State - b.State
		})
		var w bytes.Buffer
		b, err := codec.Build(ctx, schema, h.Range, &w)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range moved {
			if err := b.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		built, err := b.Handle()
		if err != nil {
			t.Fatal(err)
		}
		built.Data = inline(w.String())
		of := *op
		of.Coordinator, of.Subtasks = nil, []*format.Subtask{{Index: 0, ManagedKeyed: built}}
		sp := &format.Savepoint{ID: 1, Kind: format.SnapshotKind{Type: format.TypeSavepoint}, Operators: []*format.Operator{&of}}
		v, found := deep(t, open(t, write(t, map[string]string{"_metadata": string(encode(t, sp))}), options()), 2)
		got := ""
		for _, f := range found {
			if got = string(f.Severity); f.Code != "key-misplaced" || !strings.HasPrefix(f.Message, fmt.Sprintf("%d of %d keys ", count, len(all))) {
				t.Errorf("%s: %+v", tt.name, f)
			}
		}
		if got != tt.expect || v.Entries != int64(len(all)) {
			t.Errorf("%s: %d entries, %+v", tt.name, v.Entries, found)
		}
	}
}

// TestVerifyDeepFlips: a byte of a table that is not what it was is noticed wherever it
// is, in every table of a snapshot.
func TestVerifyDeepFlips(t *testing.T) {
	dir := copied(t, filepath.Dir(testenv.Fixture(t, "sp-003")))
	files, err := filepath.Glob(filepath.Join(dir, "shared", "*"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { // MANIFEST and OPTIONS are there too
		p, err := os.ReadFile(file)
		return err != nil || !bytes.HasSuffix(p, []byte("\xf7\xcf\xf4\x85\xb7\x41\xe2\x88"))
	})
	if len(files) < 8 {
		t.Fatalf("%d tables", len(files))
	}
	at := filepath.Join(dir, "chk-3")
	checksums := 0
	for i, file := range files {
		p, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		off := (i * 97) % 400 // in a block of data, of filters or of properties
		p[off] ^= 0x10
		if err := os.WriteFile(file, p, 0o666); err != nil {
			t.Fatal(err)
		}
		_, found := deep(t, open(t, at, options()), 2)
		if !slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Severity == finding.Error }) {
			t.Errorf("%s: byte %d: %v", filepath.Base(file), off, codes(found))
		}
		if slices.Contains(codes(found), "checksum") {
			checksums++
		}
		p[off] ^= 0x10
		if err := os.WriteFile(file, p, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, found := deep(t, open(t, at, options()), 2); slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Severity == finding.Error }) {
		t.Errorf("repaired: %+v", found)
	}
	if checksums != len(files) {
		t.Errorf("%d of %d flips are reported as checksum", checksums, len(files))
	}
}

// TestVerifyDeepOrder: what is wrong with tables is found in the order of the database,
// whatever their sizes and the number of jobs.
func TestVerifyDeepOrder(t *testing.T) {
	dir := copied(t, filepath.Dir(testenv.Fixture(t, "sp-003")))
	at := filepath.Join(dir, "chk-3")
	snap := open(t, at, options())
	var want, sizes []string
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			h, ok := sub.ManagedKeyed.(*format.Incremental)
			if !ok {
				continue
			}
			codec := &flinkkeyed.Codec{MaxParallelism: op.MaxParallelism}
			tables, err := codec.OpenTables(ctx, snap.Source(), h)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range tables.Live {
				want = append(want, fmt.Sprintf("subtask %d %s", sub.Index, l.Name))
				sizes = append(sizes, fmt.Sprintf("%d %09d", sub.Index, 1<<29-l.Size))
			}
		}
	}
	if len(want) < 8 || slices.IsSorted(sizes) {
		t.Fatalf("tables %v of sizes %v", want, sizes)
	}
	files, err := filepath.Glob(filepath.Join(dir, "shared", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		p, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasSuffix(p, []byte("\xf7\xcf\xf4\x85\xb7\x41\xe2\x88")) {
			p[3] ^= 0x10
		}
		if err := os.WriteFile(file, p, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, jobs := range []int{1, 2, 8} {
		_, found := deep(t, open(t, at, options()), jobs)
		var got []string
		for _, f := range found {
			if f.Severity == finding.Error {
				_, at, _ := strings.Cut(f.Message, ": ")
				got = append(got, strings.Split(f.Place, "/")[1]+" "+strings.Fields(at)[0])
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d jobs: %q, expected %q", jobs, got, want)
		}
	}
}

// wholes notes the objects that are read from their first byte to the end.
type wholes struct {
	storage.Storage
	mu    *sync.Mutex
	names map[string]bool
}

func (w wholes) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	if off == 0 && n < 0 {
		w.mu.Lock()
		w.names[path.Base(name)] = true
		w.mu.Unlock()
	}
	return w.Storage.ReadRange(ctx, name, off, n, pin)
}

// TestVerifyDeepOnce: a file whose entries are checked is not read again as a file; one
// with an entry that is wrong, or that holds none, is.
func TestVerifyDeepOnce(t *testing.T) {
	dir := filepath.Dir(testenv.Fixture(t, "sp-003"))
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		files["sp/"+filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	verified := func(o reader.VerifyOptions) (read map[string]bool, tables, others []string, v *reader.Verification) {
		store := wholes{inMemory(t, files), new(sync.Mutex), map[string]bool{}}
		snap := open(t, "mem://sp/chk-3", options("mem", near{store}))
		clear(store.names)
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				h, ok := sub.ManagedKeyed.(*format.Incremental)
				if !ok {
					continue
				}
				for _, s := range slices.Concat(h.Shared, h.Private) {
					file, _, ok := format.Reference(s.Data)
					switch name := path.Base(file.String()); {
					case !ok:
					case strings.HasSuffix(s.Name.String(), ".sst"):
						tables = append(tables, name)
					default:
						others = append(others, name)
					}
				}
			}
		}
		v, err := snap.Verify(ctx, o, func(f finding.Finding) {})
		if err != nil {
			t.Fatal(err)
		}
		return store.names, tables, others, v
	}
	read, tables, others, whole := verified(reader.VerifyOptions{Read: true})
	for _, name := range slices.Concat(tables, others) {
		if !read[name] {
			t.Errorf("%s is not read", name)
		}
	}
	read, _, _, v := verified(reader.VerifyOptions{Deep: true})
	for _, name := range tables {
		if read[name] {
			t.Errorf("table %s is read again", name)
		}
	}
	for _, name := range others {
		if !read[name] {
			t.Errorf("%s is not read", name)
		}
	}
	if len(tables) == 0 || len(others) == 0 || v.Entries == 0 || v.BytesRead != whole.BytesRead {
		t.Errorf("%d tables, %d other files, %+v, as files %+v", len(tables), len(others), v, whole)
	}
	broken := []byte(files["sp/shared/"+tables[0]])
	broken[40] ^= 1
	files["sp/shared/"+tables[0]] = string(broken)
	if read, _, _, _ = verified(reader.VerifyOptions{Deep: true}); !read[tables[0]] {
		t.Error("a table with a wrong checksum is not read as a file")
	}
}
