// Package opstate reads and rebuilds the streams of Flink's operator state:
// list, union and broadcast states (spec flink-operator-state, part A). It is
// the codec of format.CodecFlink, and of format.CodecRaw, whose streams are the
// same without a description in front.
//
// A stream is an envelope, which describes its states, and then the elements of
// one state after another, with nothing between them; in releases from 1.18 on
// perhaps snappy-framed. Where elements start stands in the handle only. So
// elements are cut by the offsets of all states together, and need no knowledge
// of how their values are serialized.
//
//	codec := &opstate.Codec{}
//	cur, err := codec.Elements(ctx, src, subtask.Managed, "buffered", 17)
//	for e, err := range format.All(cur) {
//		...
//	}
//
// What it writes are ropes over existing streams: it copies no element, and a
// handle built from all of its own elements is the same, byte for byte.
package opstate
