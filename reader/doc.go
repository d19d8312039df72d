// Package reader opens a snapshot: a directory with _metadata, the _metadata
// itself, or an .spt file, wherever a storage.Resolver finds it. Opening reads
// only the description; state is read on demand, by ranges, each file pinned to
// the version first seen.
//
// The files of a snapshot are read only below its own directory and its checkpoint
// root, unless Options.Follow or Options.Map allow more: see SECURITY.md.
//
// It also finds the files that a snapshot refers to (Files), checks all of
// them (Verify), and lists the snapshots under a directory (List).
//
//	snap, err := reader.Open(ctx, "sp-001", nil)
//	if err != nil { … }
//	defer snap.Close()
//	for _, op := range snap.Operators { … }
//	n, err := snap.Source().ReadAt(ctx, snap.Operators[0].Subtasks[0].Managed.Data, buf, 0)
package reader
