// Package assign says who gets what when Flink restores a snapshot: Flink's own
// redistribution (spec flink-operator-state, part B), element by element and in
// order. It computes with names, counts and hash codes; no state is read, and
// no offset is.
//
//	plan, err := assign.Operator(handles, 4, assign.Options{At: "s3://bucket/sp-1"})
//	for i, sub := range plan.Subtasks {
//		for _, piece := range sub.Pieces {
//			for _, s := range piece.Shares {
//				fmt.Printf("subtask %d <- old %d, %s [%d, %d)\n", i, piece.Old, s.Name, s.First, s.First+s.Count)
//			}
//		}
//	}
//
// # What decides
//
// List state goes in contiguous blocks, in the order of the old subtasks; the
// new subtasks that get one element more are counted from a start that moves on
// from state to state, and the states come in the order of Java hash maps.
// Nothing of this depends on more than the names and counts in the snapshot.
//
// The order of blocks inside a new subtask is another matter: handles come in
// the order of a hash map of file handles. The hash of an inline handle is made
// of its name, that of an absolute file of its path, that of a relative file
// also of the folder from which Flink restores, and that of a range of a merged
// file is another one in every JVM. Plan.DependsOnPlace and Plan.Undefined say
// so.
//
// That hash map also has a consequence for contents. Handles that Flink takes
// for equal (inline handles of one name, files of one path) share one entry,
// with one list of offsets per state. Where several old subtasks refer to the
// same file, what a new subtask is given of the last of them replaces what it
// was given of those before. Flink never writes such snapshots, but tools can;
// Subtask.Lost counts what goes.
package assign
