// Package protobuf decodes and encodes Protobuf messages by the descriptors of their
// types, for programs that store them in state with serializers of their own.
//
//	codec, err := protobuf.NewCodec(descriptorSet, "shop.Order")
//	v, err := value.ReadAll(codec, p)
//
// It does no I/O.
package protobuf
