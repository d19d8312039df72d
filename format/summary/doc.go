// Package summary counts what a savepoint holds: states, elements, bytes, and where
// the bytes are stored. It reads offsets but not state, so it works on a snapshot
// whose files are not accessible, and is cheap for large ones.
//
// Elements and their lengths are derived from the offsets alone. The package does
// not check them against the bytes; package reader does, in verify.
//
//	s, err := summary.Of(ctx, sp)
//	for _, op := range s.Operators { … }
package summary
