// Package flink defines the releases of Apache Flink and one table of what each of
// them reads and writes: versions of _metadata, of operator and keyed state, of
// serializer snapshots and RocksDB files, and how it redistributes state. Rules
// that depend on a release use this table and do not compare releases themselves.
//
//	r, err := flink.ParseRelease("1.20")
//	if r.Facts().Metadata.Has(5) { … }
//	first, last := flink.Lifetime(func(f flink.Facts) bool { return f.Finished })
//
// The packages below this one read and write Flink's bytes. They do not know .spt
// files.
package flink
