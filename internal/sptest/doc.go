// Package sptest makes test data: the bytes of savepoints, written from the specs
// without the product's encoders, so that a test never compares the product with
// itself. The data depend only on the options.
//
//	var b sptest.Buf
//	b.I32(0x4960672d).I32(3).I64(1) // magic, version, checkpoint id
//
//	err := sptest.WriteUnion(f, sptest.UnionOfSize(320<<20))
//
// It is for tests, benchmarks and the command cmd/mkbig only.
package sptest
