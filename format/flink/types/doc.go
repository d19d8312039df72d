// Package types reads Flink's serializer snapshots, which at the head of a state
// stream record how its values are serialized (spec flink-serializers). A snapshot has
// no length, so only a reader that knows its class finds its end: one table holds, for
// each class, the layout of its body and how its values are read.
//
//	s, n, err := types.Skip(p)
//	if err != nil { … } // *UnknownClass if the class is not in the table
//	codec, ok := types.CodecOf(s)
//	v, n, err := codec.Read(element)
//
// A codec reads values and writes them back to the same bytes. The package does no
// I/O.
package types
