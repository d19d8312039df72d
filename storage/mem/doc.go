// Package mem is a store in memory that behaves like S3: flat names, no rename,
// conditional creation, a new version with every write, and nothing visible
// before Commit. It is for tests and for work without a disk; it does not bound
// its size.
//
//	s := mem.New()
//	w, err := s.Create(ctx, "sp/_metadata", storage.CreateOptions{IfAbsent: true})
package mem
