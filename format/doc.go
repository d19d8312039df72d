// Package format is the model of a savepoint, and the edits of it.
//
// A [Savepoint] is an immutable tree of plain structs: operators, their subtasks,
// and the state handles of each subtask. The tree does not contain the state
// itself. A handle names its bytes by a [Stream], and a [Source] reads them. The
// same tree describes a Flink snapshot (a directory with _metadata) and an .spt
// file. What only one container understands is kept in the opaque [Wire] of a node,
// so a file that is read and written again keeps every byte.
//
// An edit never changes a node. It copies the nodes on the path to its changes and
// shares the rest; see [Savepoint.MapStreams].
//
// The package does no I/O and imports nothing of this module. Package format/flink
// and format/spt and the packages below them decode and encode; packages reader and
// writer open and write snapshots.
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
