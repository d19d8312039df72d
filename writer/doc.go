// Package writer writes a snapshot at a new location, all or nothing.
//
// [Prepare] checks everything and writes nothing: it plans which files are
// copied, linked or left in place and which references change, and it refuses
// missing files and targets that exist. [Plan.Write] executes the plan. It writes
// and syncs the state files first and the description last; until the end nothing
// is under the target's name, or the snapshot to be replaced is: the two are
// exchanged atomically if the system can. [Write] does both.
//
// It never opens an input for writing. The new description is decoded again and
// compared before it becomes visible.
//
//	snap, err := reader.Open(ctx, "sp-001", &reader.Options{Stores: stores})
//	…
//	report, err := writer.Write(ctx, snap.View(), "sp-001.spt", &writer.Options{Stores: stores})
//
// [Builder] writes the state of a Go program, step by step. To edit a snapshot
// before it is written, use package transform.
package writer
