// Package summary adds up what a savepoint holds: states, elements, bytes, and
// where the bytes lie. It reads offsets, never state, so it works on a
// snapshot whose files are out of reach, and costs little on a huge one.
//
// What it says of elements and their lengths follows from the offsets alone:
// nothing is checked against the bytes. That is the business of verify.
//
//	s, err := summary.Of(ctx, sp)
//	for _, op := range s.Operators { … }
package summary
