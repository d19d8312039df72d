// Package format is the model of spt: what a savepoint is.
//
// A [Savepoint] is an immutable tree of plain structs: operators, their
// subtasks, and the state handles of each subtask. State itself is not in the
// tree. A handle names its bytes by a [Stream], and a [Source] reads them. The
// same tree describes a Flink snapshot (a folder with _metadata) and an .spt
// file; what only one container understands travels in the opaque [Wire] of a
// node, so that a file that is read and written again keeps every byte.
//
// An edit never changes a node. It copies the nodes on the path to what it
// changes and shares the rest; [Savepoint.MapStreams] is the pattern.
//
// The package does no I/O and imports nothing of ours. Decoders live in
// format/flink and format/spt, opening and writing in reader and writer.
//
//	for _, op := range sp.Operators {
//		for _, sub := range op.Subtasks {
//			if h := sub.Managed; h != nil {
//				for _, st := range h.States {
//					fmt.Println(op.Label(), sub.Index, st.Name, st.Mode, st.Offsets.Len())
//				}
//			}
//		}
//	}
package format
