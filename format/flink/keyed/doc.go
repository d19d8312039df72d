// Package keyed reads Flink's keyed state: the headers of its streams, which list the
// states and the serializers of keys and values, and its entries in every encoding
// (spec flink-keyed-state). It builds canonical state from entries.
//
// All encodings start with the same header: canonical savepoints, the format of the
// heap backend, and the metadata that RocksDB stores next to its files.
//
//	h, err := keyed.ReadHeader(ctx, src, stream)
//	for _, st := range h.States {
//		fmt.Println(st.Name, st.Keyed) // orders map
//	}
//
// A [Codec] reads entries, which are the same whatever the encoding was. They are
// bytes; package format/flink/types decodes them.
//
//	codec := &keyed.Codec{MaxParallelism: op.MaxParallelism}
//	err := format.EachKeyedEntry(ctx, src, codec, sub.ManagedKeyed, format.KeyedSelection{}, func(e format.KeyedEntry) error {
//		fmt.Printf("%d %x %x\n", e.KeyGroup, e.Key, e.Value)
//		return nil
//	})
//
// [Recompress] copies canonical state with its key groups compressed or not.
package keyed
