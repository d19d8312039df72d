// Package native reads and writes the state of Go programs: msgpack values without
// an envelope. docs/format.md, "Native state", is the specification.
//
// [List], [Broadcast], [Keyed] and [Get] read state as Go values; writer.Builder
// writes it:
//
//	for order, err := range native.List[Order](ctx, view, "shop", "orders") {
//		if err != nil { … }
//		fmt.Println(order.ID)
//	}
//
// The codecs are [Codec] for operator state, [KeyedCodec] for keyed state, and
// [ValueCodec] for single values. They return elements, keys and entries as
// complete msgpack values. The package does not depend on the .spt container.
package native
