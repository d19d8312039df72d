package rocksdb_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// incremental are the handles with files of RocksDB in a keyed handle.
func incremental(h format.KeyedHandle) (all []*format.Incremental) {
	switch h := h.(type) {
	case *format.Incremental:
		all = append(all, h)
	case *format.Changelog:
		for _, m := range h.Materialized {
			all = append(all, incremental(m)...)
		}
	}
	return all
}

// TestCorpus verifies every table of real snapshots and scans their databases.
func TestCorpus(t *testing.T) {
	var n struct{ snapshots, databases, missing, tables, families int }
	var sum rocksdb.Counts
	var content rocksdb.Content
	variants := map[string]int{}
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		used := false
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				for _, h := range incremental(sub.ManagedKeyed) {
					used = true
					db, err := rocksdb.Open(t.Context(), snap.Source(), append(h.Shared, h.Private...), rocksdb.Options{})
					if errors.Is(err, format.ErrMissing) {
						n.missing++
						continue
					}
					if err != nil {
						t.Errorf("%s, operator %q, subtask %d: %v", dir, op.Label(), sub.Index, err)
						continue
					}
					n.databases++
					if len(db.Logs) > 0 {
						t.Errorf("%s: logs %v", dir, db.Logs)
					}
					for _, f := range db.Families {
						n.families++
						for _, l := range f.Tables {
							table, err := db.Table(t.Context(), l)
							if errors.Is(err, format.ErrMissing) {
								n.missing++
								continue
							}
							if err != nil {
								t.Errorf("%s: %v", dir, err)
								continue
							}
							c, err := db.Verify(t.Context(), f, l, nil)
							if err != nil {
								t.Errorf("%s: %s: %v", dir, l.Name, err)
							}
							n.tables++
							content.Blocks += c.Blocks
							content.Entries += c.Entries
							content.Ranges += c.Ranges
							content.MergeOperands += c.MergeOperands
							variants[fmt.Sprintf("format %d, %v, %s", table.Format, table.Checksum, table.Compression)]++
						}
						_, counts, err := scanFamily(t.Context(), db, f.Name, rocksdb.Bounds{})
						if err != nil && !errors.Is(err, format.ErrMissing) {
							t.Errorf("%s: %s: %v", dir, f.Name, err)
						}
						sum.Keys += counts.Keys
						sum.Entries += counts.Entries
						sum.Dead += counts.Dead
						sum.Operands += counts.Operands
					}
				}
			}
		}
		if used {
			n.snapshots++
		}
	}
	t.Logf("%+v; %v", n, variants)
	t.Logf("tables: %d blocks, %d entries, %d merge operands, %d range tombstones", content.Blocks, content.Entries, content.MergeOperands, content.Ranges)
	t.Logf("scans: %+v", sum)
	testenv.Some(t, "databases of RocksDB", n.databases, n.snapshots > 0)
}
