// Package writer writes a snapshot at a new location, all or nothing.
//
// [Prepare] looks at everything first and writes nothing: which files are
// copied, linked or left where they are, which references change, what is
// missing, whether the target may be taken. [Plan.Write] then does just that.
// State files come first, the description last, each synced; until the end
// nothing is under the target's name, or the snapshot that is replaced is: the two
// are exchanged in one step where the system can. [Seal] is both in one.
//
// An input is never opened for writing. What was written is decoded again and
// compared before it becomes visible.
//
//	snap, err := reader.Open(ctx, "sp-001", &reader.Options{Stores: stores})
//	…
//	report, err := writer.Write(ctx, snap.View(), "sp-001.spt", &writer.Options{Stores: stores})
//
// [Builder] seals the state of a Go program, step by step.
package writer
