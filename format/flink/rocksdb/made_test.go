package rocksdb_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// made returns the files that RocksDB itself made, by name.
func made(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"rocksdb-7.8.3.zip", "rocksdb-11.1.2.zip"} {
		z, err := zip.OpenReader("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close() //nolint:errcheck // nothing was written
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			p, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[f.Name] = p
		}
	}
	return files
}

func stream(p []byte) format.Stream { return &format.Inline{Data: format.NewBytes(p)} }

func open(t testing.TB, p []byte) *rocksdb.Table {
	t.Helper()
	table, err := rocksdb.OpenTable(t.Context(), sptest.Memory{}, stream(p), rocksdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// database returns the files of one database.
func database(files map[string][]byte, name string) (all []format.NamedStream) {
	for path, p := range files {
		if dir, base, _ := strings.Cut(path, "/"); dir == name {
			all = append(all, format.NamedStream{Name: format.NewText(base), Data: stream(p)})
		}
	}
	return all
}

// text is an entry as a test compares it.
func text(e rocksdb.TableEntry) string {
	return fmt.Sprintf("%d %s %s", e.Kind, e.Key, e.Value)
}

func value(i int) string {
	v := fmt.Sprintf("value-%d-", i)
	for len(v) < 20+i%37 {
		v += string("abcdefgh"[(i+len(v))%8])
	}
	return v
}

// written are the entries that make.cc puts into a table of n keys. RocksDB leaves
// out what its own range tombstone deletes.
func written(n int) (all []string) {
	type entry struct{ key, text string }
	var list []entry
	add := func(kind int, key, value string) {
		if key >= "key-00005" && key < "key-00008" {
			return
		}
		list = append(list, entry{key, fmt.Sprintf("%d %s %s", kind, key, value)})
	}
	for i := range n {
		key := fmt.Sprintf("key-%05d", i)
		add(1, key, value(i))
		if i%7 == 0 {
			add(2, key+"-list", fmt.Sprintf("m%d", i))
		}
		if i%11 == 3 {
			add(0, key+"-gone", "")
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range list {
		all = append(all, e.text)
	}
	return all
}

func scan(t testing.TB, c *rocksdb.TableCursor) (all []string) {
	t.Helper()
	for {
		e, err := c.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text(e))
	}
}

// TestMadeTables reads tables of every format version, checksum and compression
// that RocksDB itself wrote.
func TestMadeTables(t *testing.T) {
	n := 0
	compressed := map[rocksdb.Compression]int{}
	for name, p := range made(t) {
		if !strings.HasPrefix(name, "tables/") {
			continue
		}
		n++
		keys := 60
		if strings.Contains(name, "dict") {
			keys = 300
		}
		table := open(t, p)
		want := written(keys)
		if got := scan(t, table.Scan(t.Context(), nil)); !slices.Equal(got, want) {
			t.Errorf("%s: %d entries, expected %d: %v", name, len(got), len(want), got)
		}
		content, err := rocksdb.Verify(t.Context(), table, nil)
		if err != nil || content.Entries != int64(len(want)) || content.Ranges != 1 || table.MergeOperator != "StringAppendTESTOperator" || table.ColumnFamily != "default" {
			t.Errorf("%s: %v, %+v", name, err, content)
		}
		for c := range content.Compressed {
			compressed[c]++
		}
		ranges, err := table.Ranges(t.Context())
		if err != nil || len(ranges) != 1 || string(ranges[0].Start) != "key-00005" || string(ranges[0].End) != "key-00008" {
			t.Errorf("%s: %v, %+v", name, err, ranges)
		}
		// Every key and the gaps between are found through the index.
		for i := range want {
			_, rest, _ := strings.Cut(want[i], " ")
			key, _, _ := strings.Cut(rest, " ")
			for _, from := range []string{key, key[:len(key)-1] + string(key[len(key)-1]-1) + "\xff"} {
				c := table.Scan(t.Context(), []byte(from))
				e, err := c.Next()
				if err != nil || text(e) != want[i] {
					t.Fatalf("%s: from %q: %v, %q, expected %q", name, from, err, text(e), want[i])
				}
			}
		}
		if _, err := table.Scan(t.Context(), []byte("z")).Next(); err != io.EOF {
			t.Errorf("%s: after the last key: %v", name, err)
		}
	}
	t.Logf("%d tables, by compression: %v", n, compressed)
	if n != 260 || len(compressed) != 7 {
		t.Errorf("%d tables, %d compressions", n, len(compressed))
	}
}

// dump is what RocksDB's own iterator returned: family, key and value.
func dump(t testing.TB, p []byte) (all [][3]string) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(p))
	for lines.Scan() {
		f := strings.Split(lines.Text(), " ")
		k, err1 := hex.DecodeString(f[1])
		v, err2 := hex.DecodeString(f[2])
		if err1 != nil || err2 != nil {
			t.Fatal(lines.Text())
		}
		all = append(all, [3]string{f[0], string(k), string(v)})
	}
	return all
}

func scanFamily(ctx context.Context, db *rocksdb.Database, family string, b rocksdb.Bounds) (all [][3]string, n rocksdb.Counts, err error) {
	c, err := db.Scan(ctx, db.Family(family), b)
	if err != nil {
		return nil, n, err
	}
	for {
		e, err := c.Next()
		if err == io.EOF {
			return all, c.Counts, nil
		}
		if err != nil {
			return all, c.Counts, err
		}
		all = append(all, [3]string{family, string(e.Key), string(e.Value)})
	}
}

// TestMadeDatabases: a scan returns what RocksDB's own iterator returned.
func TestMadeDatabases(t *testing.T) {
	files := made(t)
	var sum rocksdb.Counts
	entries, tables, ranges := 0, 0, 0
	for i := range 8 {
		name := fmt.Sprintf("db%d", i)
		db, err := rocksdb.Open(t.Context(), sptest.Memory{}, database(files, name), rocksdb.Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		if len(db.Families) != 3 || db.Family("dropped") != nil || len(db.Logs)+len(db.Unused) > 0 {
			t.Errorf("%s: %+v", name, db)
		}
		all := dump(t, files[name+".dump"])
		levels := map[int]int{}
		for _, family := range []string{"values", "lists"} {
			var want [][3]string
			for _, e := range all {
				if e[0] == family {
					want = append(want, e)
				}
			}
			got, n, err := scanFamily(t.Context(), db, family, rocksdb.Bounds{})
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %s: %v, %d keys, expected %d", name, family, err, len(got), len(want))
			}
			if n.Keys != int64(len(got)) || n.Dead+n.Keys > n.Entries || n.Operands == 0 && n.Dead+n.Keys != n.Entries {
				t.Errorf("%s: %s: %+v", name, family, n)
			}
			sum.Entries, sum.Dead, sum.Operands = sum.Entries+n.Entries, sum.Dead+n.Dead, sum.Operands+n.Operands
			entries += len(want)
			// Every part of the keys alone.
			for a := 0; a < 17; a++ {
				b := rocksdb.Bounds{From: []byte{byte(a)}, To: []byte{byte(a + 1), 'k', 'e', 'y', '-', '0', '0', '1'}}
				var part [][3]string
				for _, e := range want {
					if e[1] >= string(b.From) && e[1] < string(b.To) {
						part = append(part, e)
					}
				}
				if got, _, err := scanFamily(t.Context(), db, family, b); err != nil || !slices.Equal(got, part) {
					t.Fatalf("%s: %s: %q: %v, %d keys, expected %d", name, family, b, err, len(got), len(part))
				}
			}
			for _, l := range db.Family(family).Tables {
				tables++
				levels[l.Level]++
				entries := int64(0)
				n, err := db.Verify(t.Context(), db.Family(family), l, func(rocksdb.TableEntry) error {
					entries++
					return nil
				})
				if err != nil || entries != n.Entries {
					t.Errorf("%s: %d of %d entries: %v", name, entries, n.Entries, err)
				}
				ranges += int(n.Ranges)
			}
		}
		t.Logf("%s: tables by level: %v", name, levels)
	}
	t.Logf("%d keys of %d tables with %d range tombstones; %+v", entries, tables, ranges, sum)
	if entries < 2000 || sum.Dead < 1000 || sum.Operands < 500 || ranges < 20 {
		t.Error("the databases have too little to prove anything")
	}
}

// TestConcurrent scans one table and one database from several goroutines.
func TestConcurrent(t *testing.T) {
	files := made(t)
	table := open(t, files["tables/dict-trained-zstd.sst"])
	db, err := rocksdb.Open(t.Context(), sptest.Memory{}, database(files, "db3"), rocksdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := dump(t, files["db3.dump"])
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if got := scan(t, table.Scan(t.Context(), nil)); !slices.Equal(got, written(300)) {
				t.Error("a table scanned at the same time differs")
			}
			values, _, err1 := scanFamily(t.Context(), db, "values", rocksdb.Bounds{})
			lists, _, err2 := scanFamily(t.Context(), db, "lists", rocksdb.Bounds{})
			if err := errors.Join(err1, err2); err != nil || !slices.Equal(append(values, lists...), want) {
				t.Error("a database scanned at the same time differs", err)
			}
		})
	}
	wait.Wait()
}
