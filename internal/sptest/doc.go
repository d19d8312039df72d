// Package sptest makes test data from code: the bytes of savepoints, written
// straight from the specs and by nothing of the product, so that a test never
// compares the product with itself. All of it follows from its options.
//
//	var b sptest.Buf
//	b.I32(0x4960672d).I32(3).I64(1) // magic, version, checkpoint id
//
//	err := sptest.WriteUnion(f, sptest.UnionOfSize(320<<20))
//
// It is for tests, benchmarks and the command cmd/mkbig only.
package sptest
