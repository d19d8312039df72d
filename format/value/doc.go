// Package value represents the decoded bytes of elements, keys and entries: one
// [Value] type for all encodings, and the [Codec] interface, which reads and writes
// values of one encoding.
//
// A [Value] keeps the details of its bytes: the order of fields in a record and of
// entries in a map, the digits of a decimal, the bits of a NaN, and, if a codec has
// several encodings of a value, which one was read. Appending a value that was read
// returns the same bytes.
//
//	v, n, err := codec.Read(p)
//	if err != nil { … }
//	for i := range v.Len() {
//		fmt.Println(v.Name(i), v.At(i))
//	}
//
// The package does not compare values and does not know types; codecs do. The
// codecs of Flink's serializers are in format/flink/types, the codec of Go programs
// in format/spt/native.
package value
