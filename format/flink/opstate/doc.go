// Package opstate reads and rebuilds the streams of Flink's operator state: list,
// union and broadcast states (spec flink-operator-state, part A). It is the codec
// of format.CodecFlink, and of format.CodecRaw, whose streams have no envelope. It
// does not read keyed state, and it does not decode values: see packages keyed and
// types.
//
// A stream is an envelope, with the names and serializer snapshots of its states,
// followed by the elements of one state after another. From Flink 1.18 on, the
// elements can be snappy-framed. Only the handle has the offsets of elements, so
// elements are located by the offsets of all states together, without knowing how
// values are serialized.
//
//	codec := &opstate.Codec{}
//	cur, err := codec.Elements(ctx, src, subtask.Managed, "buffered", 17)
//	for e, err := range format.All(cur) {
//		...
//	}
//
// Built streams are ropes over existing streams. They copy no element, and a handle
// built from all of its own elements has the same bytes.
package opstate
