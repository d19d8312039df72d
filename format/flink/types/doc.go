// Package types reads Flink's serializer snapshots, which at the head of a state
// stream record how its values are serialized (spec flink-serializers). A snapshot has
// no length, so only a reader that knows its class finds its end: one table holds, for
// each class, the layout of its body and how its values are read.
//
//	s, n, err := types.Skip(p)
//	if err != nil { … } // *UnknownClass if the class is not in the table
//	decode, ok := types.Decoder(s)
//
// Values are what encoding/json can write. The package writes no values and does no
// I/O.
package types
