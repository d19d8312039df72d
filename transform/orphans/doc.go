// Package orphans finds the files below some directories that no snapshot refers to,
// and removes them one by one. It also computes which snapshots share files.
//
// Find lists everything below the roots, opens every snapshot that it finds there and
// resolves every reference, of all kinds of handles, to a listed file. What is left
// over in a directory in which Flink keeps state is unreferenced. Files in other
// directories, such as what high availability keeps, are only counted.
//
// Nothing is decided by a listing alone: a file is removed by its name, after its
// version was compared with the one that was listed, and only if every snapshot could
// be read, all references lead to what was listed, and nothing changed meanwhile.
//
// Memory: about 150 bytes for each listed file, and the snapshots that are open at the
// same time. Requests: one list for each directory, or for each 1,000 objects where a
// store has no links, and one read for each snapshot.
//
// It is not for leftovers of spt itself: see storage.Cleaner.
//
//	found, err := orphans.Find(ctx, []string{"/data/flink"}, orphans.Options{})
//	for _, f := range found.Files {
//		fmt.Println(f.Path, f.Bytes, f.Kept)
//	}
package orphans
