// Package types knows Flink's serializer snapshots: the descriptions, in the
// head of a state stream, of what serializer its values were written with
// (spec flink-serializers). A snapshot carries no length, so getting past one
// takes knowing its class; one table holds, for each class, how far its body
// reaches and how its values are read.
//
//	s, n, err := types.Skip(p)
//	if err != nil { … } // *UnknownClass where the class is not in the table
//	decode, ok := types.Decoder(s)
//
// Values come out as what encoding/json can write. The package writes none,
// and does no I/O.
package types
