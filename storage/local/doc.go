// Package local is the store on local disks. Names are paths as the user wrote
// them, absolute or relative to the working directory; on Windows List yields
// them with "/".
//
// A version is device:inode:size:mtime, so a file that was replaced, cut or
// written to is noticed, at the latest when a read of it reaches its end. On
// Windows device and inode are 0.
//
// A new file is written beside its target as tempname.New, synced, renamed,
// and its directory is synced. Missing directories are made, and go again when what they
// were made for is aborted or deleted. Beyond storage.Storage it can map, link,
// copy without moving bytes through the process, move, exchange, mark as in use,
// remove directories, find and remove leftovers, stream pipes and tell the free space,
// as far as the system can.
//
//	s := local.New()
//	body, info, err := s.ReadRange(ctx, "sp/_metadata", 0, -1, "")
package local
