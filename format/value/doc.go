// Package value is what the bytes of an element, a key or an entry mean: one
// [Value] type for all encodings, and a [Codec] that reads and writes one of them.
//
// A [Value] keeps what its bytes say: the order of the fields of a record and of
// the entries of a map, the digits of a decimal, the bits of a NaN, and, where a
// codec has several encodings of a value, which of them was read. Appending a value
// that was read returns the same bytes.
//
//	v, n, err := codec.Read(p)
//	if err != nil { … }
//	for i := range v.Len() {
//		fmt.Println(v.Name(i), v.At(i))
//	}
//
// The package does not compare values, and knows no types: a codec does. Codecs of
// Flink's serializers are in format/flink/types, of Go programs in
// format/spt/native.
package value
