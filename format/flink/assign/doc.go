// Package assign computes which subtask receives which state when Flink restores a
// snapshot: Flink's own redistribution (spec flink-operator-state, part B), element
// by element and in order. It uses only names, counts and hash codes; it does not
// read state or offsets, and it does not build handles of operator state.
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
// # The rules
//
// List state is assigned in contiguous blocks, in the order of the old subtasks.
// The new subtasks that get one element more are counted from a start that advances
// from state to state, in the iteration order of Java hash maps. All this depends
// only on the names and counts in the snapshot.
//
// The order of blocks inside a new subtask is the iteration order of a hash map of
// file handles. The hash of an inline handle depends on its name, the hash of an
// absolute file on its path, and the hash of a relative file also on the directory
// from which Flink restores. The hash of a range of a merged file differs from JVM
// to JVM. Plan.DependsOnLocation and Plan.Undefined report these cases.
//
// That hash map also affects contents. Handles that are equal for Flink (inline
// handles with the same name, files with the same path) share one entry, with one
// list of offsets per state. If several old subtasks refer to the same file, what a
// new subtask gets of the last of them replaces what it got of the others. Flink
// never writes such snapshots, but tools can; Subtask.Lost counts the elements that
// are replaced.
package assign
