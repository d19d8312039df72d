// Package opstate reads and rebuilds the streams of Flink's operator state: list, union
// and broadcast states (spec flink-operator-state, part A). It is the codec of
// format.CodecFlink, and of format.CodecRaw, whose streams have no envelope. It does not
// read keyed state, and it does not decode values: see packages keyed and types.
//
// A stream is an envelope, with the names and serializer snapshots of its states,
// followed by the elements of one state after another; from Flink 1.18 on they can be
// snappy-framed. Only the handle has the offsets of elements. So elements are cut by the
// offsets of all states together, without knowledge of how values are serialized.
//
//	codec := &opstate.Codec{}
//	cur, err := codec.Elements(ctx, src, subtask.Managed, "buffered", 17)
//	for e, err := range format.All(cur) {
//		...
//	}
//
// The streams that it builds are ropes over existing streams: it copies no element, and a
// handle built from all of its own elements has the same bytes.
package opstate
