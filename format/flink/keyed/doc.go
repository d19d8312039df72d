// Package keyed reads Flink's streams of keyed state (spec flink-keyed-state):
// so far their header, which says what states there are and how keys and values
// were serialized.
//
//	h, err := keyed.ReadHeader(ctx, src, stream)
//	for _, st := range h.States {
//		fmt.Println(st.Name, st.Keyed) // orders map
//	}
//
// The same header stands in front of all forms: canonical savepoints, the heap
// backend's own form, and what RocksDB describes beside its files. Entries are
// not read.
package keyed
