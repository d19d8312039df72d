// Package native is the codec of state that Go programs write: msgpack values,
// without an envelope. docs/format.md, "Native state", is the specification.
//
// Operator state is read through [Codec], which opens a cursor at any element;
// keyed state through [Entries], which opens one at any key group. To write a
// file, use writer.Builder: it encodes values with [Append] and lays them out.
//
//	cur, err := native.Codec{}.Elements(ctx, src, subtask.Managed, "buffered", 17)
//	for e, err := range format.All(cur) {
//		...
//	}
//
// Elements, keys and entries are handed out as msgpack, checked to be whole;
// [Decode] gives the values they are. The package knows nothing of the .spt
// container.
package native
