// Package mem is a store in memory that behaves as S3 does: flat names, no
// rename, conditional creation, a new version with every write, and nothing
// visible before Commit. It is for tests and for work without a disk; it has no
// limits of its own.
//
//	s := mem.New()
//	w, err := s.Create(ctx, "sp/_metadata", storage.CreateOptions{IfAbsent: true})
package mem
