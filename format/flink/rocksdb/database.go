package rocksdb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Database is the live tables of a database, as its MANIFEST lists them. It is safe
// for concurrent use.
type Database struct {
	Families []*Family // by id
	// Logs are the write-ahead logs that have bytes. Their entries are not read.
	Logs []string
	// Unused are the tables among the files that are not live, and Absent the live
	// tables that are not among the files.
	Unused, Absent []string

	src   format.Source
	files map[string]format.Stream
	o     Options
}

// Family is a column family.
type Family struct {
	ID     uint64
	Name   string
	Tables []*LiveTable // by level, then as the level is ordered: level 0 newest first, others by key
}

// LiveTable is a table of a column family and what the database records about it.
type LiveTable struct {
	Name   string // of the file
	Number uint64
	Level  int
	Size   int64
	// FirstSequence and LastSequence are the range of its sequence numbers.
	FirstSequence, LastSequence uint64

	bounds keyRange
}

// keyRange is the user keys of a table, range tombstones included.
type keyRange struct {
	smallest, largest []byte
	open              bool // largest itself is not in the table: a tombstone ends there
}

// Keys returns the smallest and the largest user key of the table and its range
// tombstones. The caller must not change them.
func (t *LiveTable) Keys() (smallest, largest []byte) { return t.bounds.smallest, t.bounds.largest }

// maxManifest is larger than any MANIFEST.
const maxManifest = 1 << 30

// Open reads CURRENT and the MANIFEST of a database. The files are found by their
// names; they can be listed in any order. Tables are not read.
func Open(ctx context.Context, src format.Source, files []format.NamedStream, o Options) (*Database, error) {
	db := &Database{src: src, files: make(map[string]format.Stream, len(files)), o: o}
	for _, f := range files {
		name := f.Name.String()
		if _, twice := db.files[name]; twice {
			return nil, corrupt("two files with the name %q", name)
		}
		db.files[name] = f.Data
	}
	current, err := db.read(ctx, "CURRENT", 1<<10)
	if err != nil {
		return nil, err
	}
	name, ok := strings.CutSuffix(string(current), "\n")
	if !ok || !strings.HasPrefix(name, "MANIFEST-") {
		return nil, format.InFile(corrupt("expected the name of a MANIFEST, found %q", cut(string(current))), "CURRENT")
	}
	p, err := db.read(ctx, name, maxManifest)
	if err != nil {
		return nil, err
	}
	if db.Families, err = readManifest(p); err != nil {
		return nil, format.InFile(err, name)
	}
	live := map[string]bool{}
	for _, f := range db.Families {
		for _, t := range f.Tables {
			live[t.Name] = true
			if db.files[t.Name] == nil {
				db.Absent = append(db.Absent, t.Name)
			}
		}
	}
	for name, s := range db.files {
		switch {
		case strings.HasSuffix(name, ".log"):
			if n, err := format.StreamSize(ctx, src, s); err != nil || n > 0 {
				db.Logs = append(db.Logs, name)
			}
		case strings.HasSuffix(name, ".sst") && !live[name]:
			db.Unused = append(db.Unused, name)
		}
	}
	slices.Sort(db.Logs)
	slices.Sort(db.Unused)
	slices.Sort(db.Absent)
	return db, nil
}

// read returns the bytes of a small file.
func (db *Database) read(ctx context.Context, name string, most int64) ([]byte, error) {
	s, ok := db.files[name]
	if !ok {
		return nil, format.InFile(corrupt("expected a file with this name among the files of the database"), name)
	}
	n, err := format.StreamSize(ctx, db.src, s)
	if err != nil {
		return nil, format.InFile(err, name)
	}
	if n > most {
		return nil, format.InFile(format.Errorf(format.ErrLimit, "%d bytes, the limit is %d", n, most), name)
	}
	r := blocks{ctx: ctx, src: db.src, s: s, end: n}
	p, err := r.bytes(0, n)
	return p, format.InFile(err, name)
}

// Family returns the column family of a name, or nil.
func (db *Database) Family(name string) *Family {
	if i := slices.IndexFunc(db.Families, func(f *Family) bool { return f.Name == name }); i >= 0 {
		return db.Families[i]
	}
	return nil
}

// Table opens a live table. An error has the name of its file.
func (db *Database) Table(ctx context.Context, l *LiveTable) (*Table, error) {
	s, ok := db.files[l.Name]
	if !ok {
		return nil, format.InFile(corrupt("the MANIFEST lists this table, which is not among the files of the database"), l.Name)
	}
	t, err := openTable(ctx, db.src, s, db.o, l.LastSequence)
	if err == nil && t.Size != l.Size {
		err = corrupt("expected a table of %d bytes, found %d", l.Size, t.Size)
	}
	if err != nil {
		return nil, format.InFile(err, l.Name)
	}
	return t, nil
}

// readManifest applies the edits of a MANIFEST.
func readManifest(p []byte) ([]*Family, error) {
	v := &version{families: map[uint64]*family{0: {name: "default", live: map[uint64]*LiveTable{}}}}
	var group []*edit
	err := eachRecord(p, func(record []byte) error {
		e, err := readEdit(record)
		if err != nil {
			return err
		}
		if !e.inGroup {
			if len(group) > 0 {
				return corrupt("an edit within an atomic group that is not part of it")
			}
			return v.apply(e)
		}
		if n := len(group); n > 0 && (group[n-1].remaining == 0 || e.remaining != group[n-1].remaining-1) {
			return corrupt("expected an edit with %d after it in its atomic group, found %d", group[n-1].remaining-1, e.remaining)
		}
		if group = append(group, e); e.remaining > 0 {
			return nil
		}
		for _, e := range group {
			if err := v.apply(e); err != nil {
				return err
			}
		}
		group = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	// A group that is not complete at the end was not committed: RocksDB drops it.
	return v.list()
}

// version is the state of a MANIFEST while edits are applied.
type version struct {
	families map[uint64]*family
	tables   int
}

type family struct {
	name string
	live map[uint64]*LiveTable
}

func (v *version) apply(e *edit) error {
	if e.comparator != "" && e.comparator != Comparator {
		return format.Errorf(format.ErrUnsupported, "keys in the order of comparator %q", e.comparator)
	}
	f, ok := v.families[e.family]
	switch {
	case e.adds && ok:
		return corrupt("column family %d is added twice", e.family)
	case e.adds:
		for _, o := range v.families {
			if o.name == e.add {
				return corrupt("two column families with the name %q", cut(e.add))
			}
		}
		f = &family{name: e.add, live: map[uint64]*LiveTable{}}
		v.families[e.family] = f
	case !ok:
		return corrupt("an edit of column family %d, which was not added", e.family)
	case e.drops && e.family == 0:
		return corrupt("the default column family is dropped")
	case e.drops:
		v.tables -= len(f.live)
		delete(v.families, e.family)
		return nil
	}
	// A file that moves between levels is deleted and added in one edit.
	for _, d := range e.deleted {
		t := f.live[d.number]
		if t == nil || t.Level != d.level {
			return corrupt("file %d of level %d is deleted and was not added", d.number, d.level)
		}
		delete(f.live, d.number)
		v.tables--
	}
	for _, t := range e.added {
		if f.live[t.Number] != nil {
			return corrupt("file %d is added twice", t.Number)
		}
		if bytes.Compare(t.bounds.smallest, t.bounds.largest) > 0 {
			return corrupt("the smallest key of file %d is greater than its largest", t.Number)
		}
		t.Name = fmt.Sprintf("%06d.sst", t.Number)
		f.live[t.Number] = t
		if v.tables++; v.tables > maxLiveTables {
			return format.Errorf(format.ErrLimit, "more than %d live tables", maxLiveTables)
		}
	}
	return nil
}

// list returns the families with their tables in order.
func (v *version) list() (all []*Family, err error) {
	for id, f := range v.families {
		out := &Family{ID: id, Name: f.name}
		for _, t := range f.live {
			out.Tables = append(out.Tables, t)
		}
		slices.SortFunc(out.Tables, func(a, b *LiveTable) int {
			switch {
			case a.Level != b.Level:
				return cmp.Compare(a.Level, b.Level)
			case a.Level == 0:
				return cmp.Or(cmp.Compare(b.LastSequence, a.LastSequence), cmp.Compare(b.Number, a.Number))
			}
			return cmp.Or(bytes.Compare(a.bounds.smallest, b.bounds.smallest), bytes.Compare(a.bounds.largest, b.bounds.largest))
		})
		for i, t := range out.Tables {
			if i == 0 || t.Level == 0 || out.Tables[i-1].Level != t.Level {
				continue
			}
			last := out.Tables[i-1]
			if bytes.Compare(last.bounds.largest, t.bounds.smallest) > 0 {
				return nil, corrupt("files %d and %d of level %d have keys in common", last.Number, t.Number, t.Level)
			}
		}
		all = append(all, out)
	}
	slices.SortFunc(all, func(a, b *Family) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}
