// Package flink says what each release of Apache Flink reads and writes, in one
// table: versions of _metadata, of operator and keyed state, of serializer
// snapshots and RocksDB files, and how it redistributes state. A rule that depends
// on a release asks this table and compares no release itself.
//
//	r, err := flink.ParseRelease("1.20")
//	if r.Facts().Metadata.Has(5) { … }
//	first, last := flink.Lifetime(func(f flink.Facts) bool { return f.Finished })
//
// The packages below it read and write Flink's bytes. Nothing in them knows of
// .spt files.
package flink
