// Package local is the store for local disks. Names are paths as the user wrote
// them, absolute or relative to the working directory; on Windows List yields
// them with "/".
//
// A version is device:inode:size:mtime, so a file that was replaced, truncated or
// written to is noticed, at the latest when a read reaches its end. On Windows
// device and inode are 0.
//
// A new file is written next to its target under a temporary name, synced and
// renamed; then its directory is synced. Missing directories are created, and
// removed when the file is aborted or deleted. Beyond storage.Storage the store
// can map, link, copy without moving bytes through the process, move, exchange,
// mark as in use, remove directories, find and remove leftovers, stream pipes and
// report the free space, as far as the system can.
//
//	s := local.New()
//	body, info, err := s.ReadRange(ctx, "sp/_metadata", 0, -1, "")
package local
