// Package native is the codec of state that Go programs write: msgpack values,
// without an envelope. docs/format.md, "Native state", is the specification.
//
// Values are read as Go values by [List], [Broadcast], [Keyed] and [Get], and written
// by writer.Builder:
//
//	for order, err := range native.List[Order](ctx, view, "shop", "orders") {
//		if err != nil { … }
//		fmt.Println(order.ID)
//	}
//
// Below them are the codecs: [Codec] of operator state, [KeyedCodec] of keyed state,
// and [ValueCodec] of single values. They return elements, keys and entries as
// msgpack that was checked to be whole. The package knows nothing of the .spt
// container.
package native
