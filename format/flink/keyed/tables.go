package keyed

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/format/value"
)

// Tables are the tables of a handle in files of RocksDB, to check what is stored in
// them, with entries that are not part of the state any more. It is safe for
// concurrent use.
type Tables struct {
	Live []LiveTable // those among the files, in the order of the column families
	// Missing are the states without a column family, but for timers, and Heap the
	// states of timers without one: those are on the heap.
	Missing, Heap []format.Text
	Timers        bool // the header has timers
	// Families are the names of column families without a state in the header.
	Families []string
	// Logs are write-ahead logs that have bytes, Unused tables that are not live, and
	// Absent live tables that are not among the files of the handle.
	Logs, Unused, Absent []string
	// Codecs decode the parts of entries, by state.
	Codecs []value.EntryCodecs

	o  *opened
	db *rocksdb.Database
}

// LiveTable is a table and the state that it belongs to.
type LiveTable struct {
	*rocksdb.LiveTable
	Family string
	State  int // index in the header; -1: none

	family *rocksdb.Family
}

// defaultFamily is the column family that every database has, and Flink does not use.
const defaultFamily = "default"

// OpenTables reads the header and the MANIFEST of a handle.
func (c *Codec) OpenTables(ctx context.Context, src format.Source, h *format.Incremental) (*Tables, error) {
	o, err := c.nativeHeader(ctx, src, h)
	if err != nil {
		return nil, err
	}
	db, err := c.database(ctx, src, h)
	if err != nil {
		return nil, err
	}
	t := &Tables{Logs: db.Logs, Unused: db.Unused, Absent: db.Absent, o: o, db: db}
	for i := range o.access {
		a := &o.access[i]
		t.Codecs = append(t.Codecs, a.codecs(c.Types))
		t.Timers = t.Timers || a.timers
		switch {
		case db.Family(a.name.String()) != nil:
		case a.timers:
			t.Heap = append(t.Heap, a.name)
		default:
			t.Missing = append(t.Missing, a.name)
		}
	}
	for _, f := range db.Families {
		state := slices.IndexFunc(o.access, func(a access) bool { return a.name.String() == f.Name })
		if state < 0 && f.Name != defaultFamily {
			t.Families = append(t.Families, f.Name)
		}
		for _, l := range f.Tables {
			if slices.Contains(db.Absent, l.Name) {
				continue
			}
			t.Live = append(t.Live, LiveTable{LiveTable: l, Family: f.Name, State: state, family: f})
		}
	}
	return t, nil
}

// StoredEntry is an entry of a table. Value is part of the value of a list if the entry
// is a merge operand, and nil if it deletes.
type StoredEntry struct {
	format.KeyedEntry
	Kind rocksdb.Kind
}

// Verify reads all blocks of a table and checks them, see [rocksdb.Verify]. It calls
// each with every entry, of tables of a state with the parts of its key; a key that
// cannot be split as its state does is an error.
func (t *Tables) Verify(ctx context.Context, l *LiveTable, each func(StoredEntry) error) (rocksdb.Content, error) {
	return t.db.Verify(ctx, l.family, l.LiveTable, func(e rocksdb.TableEntry) error {
		s := StoredEntry{KeyedEntry: format.KeyedEntry{State: l.State, Stored: e.Key, Value: e.Value}, Kind: e.Kind}
		if l.State < 0 {
			return each(s)
		}
		a := &t.o.access[l.State]
		if s.KeyGroup = groupOf(e.Key, a.prefix); s.KeyGroup < 0 {
			return format.At(format.Errorf(format.ErrCorrupt, "a key of %d bytes", len(e.Key)), "state %q", a.name)
		}
		if err := a.split(&s.KeyedEntry); err != nil {
			return format.At(err, "key group %d/state %q", s.KeyGroup, a.name)
		}
		return each(s)
	})
}
