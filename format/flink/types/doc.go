// Package types reads Flink's serializer snapshots, which record at the head of a
// state stream how its values are serialized (spec flink-serializers), and the
// values themselves. A snapshot has no length, so its end can only be found by
// knowing its class. One table has, for each class, the layout of its body and the
// codec of its values.
//
//	s, n, err := types.Skip(p)
//	if err != nil { … } // *UnknownClass if the class is not in the table
//	codec, ok := types.CodecOf(s)
//	v, n, err := codec.Read(element)
//
// A codec reads values and writes them back to the same bytes. The package does no
// I/O and does not run user code: it decodes only the values of Flink's own
// serializers.
package types
