package rocksdb_test

import (
	"context"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
	"github.com/savepoint-tools/spt/reader"
)

// Scan the column families of the first database in a checkpoint.
func Example() {
	ctx := context.Background()
	snap, err := reader.Open(ctx, "../../../testdata/savepoints/sp-003/000000000000000000000000005b706e/chk-3", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer snap.Close() //nolint:errcheck // nothing was written
	for _, op := range snap.Operators {
		h, ok := op.Subtasks[0].ManagedKeyed.(*format.Incremental)
		if !ok {
			continue
		}
		db, err := rocksdb.Open(ctx, snap.Source(), append(h.Shared, h.Private...), rocksdb.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, f := range db.Families {
			cur, err := db.Scan(ctx, f, rocksdb.Bounds{})
			if err != nil {
				fmt.Println(err)
				return
			}
			for err == nil {
				_, err = cur.Next()
			}
			if err != io.EOF {
				fmt.Println(err)
				return
			}
			fmt.Printf("%s: %d tables, %d keys, %d entries overwritten or deleted\n", f.Name, len(f.Tables), cur.Keys, cur.Dead)
		}
	}
	// Output:
	// default: 0 tables, 0 keys, 0 entries overwritten or deleted
	// count: 1 tables, 1 keys, 0 entries overwritten or deleted
	// words: 1 tables, 1 keys, 0 entries overwritten or deleted
	// last: 1 tables, 1 keys, 0 entries overwritten or deleted
	// _timer_state/processing_user-timers: 0 tables, 0 keys, 0 entries overwritten or deleted
	// _timer_state/event_user-timers: 1 tables, 2 keys, 0 entries overwritten or deleted
}
