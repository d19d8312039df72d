// Package keyed reads the headers of Flink's streams of keyed state (spec
// flink-keyed-state), which list the states and the serializers of keys and values. It
// does not read entries; [Recompress] copies them.
//
//	h, err := keyed.ReadHeader(ctx, src, stream)
//	for _, st := range h.States {
//		fmt.Println(st.Name, st.Keyed) // orders map
//	}
//
// All formats start with the same header: canonical savepoints, the format of the heap
// backend, and the metadata that RocksDB stores next to its files.
package keyed
