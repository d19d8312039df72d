// Package rocksdb reads the files of a RocksDB database, as Flink stores them in
// checkpoints and native savepoints: tables (.sst), the MANIFEST and CURRENT. It
// knows nothing of Flink's keys; package format/flink/keyed does.
//
// A [Database] lists the live tables of each column family. A scan of a family
// merges its tables, applies deletions and range tombstones, joins the operands of
// list states, and returns the keys in order:
//
//	db, err := rocksdb.Open(ctx, src, files, rocksdb.Options{})
//	cur, err := db.Scan(ctx, db.Family("counts"), rocksdb.Bounds{})
//	for {
//		e, err := cur.Next()
//		if err == io.EOF { break }
//		if err != nil { return err }
//		fmt.Printf("%x = %x\n", e.Key, e.Value)
//	}
//
// A [Table] is one file: its properties, its entries with sequence numbers, and
// [Verify], which reads all of it.
//
// Blocks are read when they are needed. A scan holds, for each of the tables that it
// merges at the same time, one index block, one data block and 256 KiB read ahead:
// its memory does not depend on the size of the state.
//
// Supported are block-based tables of the format versions 0 to 7 with every
// checksum and compression of RocksDB, single-level and partitioned indexes. Blob
// files, wide columns, timestamps of users and comparators other than the bytewise
// one, which Flink does not use, are format.ErrUnsupported. Write-ahead logs are
// listed, not read: Flink's restore ignores them.
package rocksdb
