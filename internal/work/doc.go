// Package work divides a long read or write of snapshots into units.
//
// A [Unit] names a part of the work: the job, the handle of an operator and
// subtask, its elements, and the streams that are read. It is a pure value: it
// holds no open file, no function and no secret, and refers to a snapshot only by
// positions and identities. [Unit.Append] and [Decode] are its stable encoding: a
// unit has the same result in the process that made it and in any other that has
// opened the same snapshot.
//
// A long read has three parts:
//
//	plan(snapshot)       iter.Seq[Unit]   reads descriptions only; pure and ordered
//	run(ctx, Unit)       (Result, error)  bounded memory; no state of its own
//	merge(Unit, Result)                   in the order of the plan, or in any order
//
// [Run] runs the units of a plan on several goroutines and merges the results in
// the order of the plan, so that the output is the same for any number of jobs.
// verify, cat, diff, the counting of union state and the writing of files use it.
//
// # Encoding
//
// A unit is one msgpack array. Integers have their shortest encoding.
//
//	[version, job, handle, state, first, count, target, parts]
//
//	version  1
//	job      text, see Job
//	handle   nil, or [operator, subtask, id, index, slot, nested]:
//	         the position of the operator in the snapshot, the position of the subtask
//	         in the operator, the operator id (16 bytes), the index of the subtask, the
//	         slot (1 managed, 2 raw, 3 managed keyed, 4 raw keyed), and the number of the handle in the slot, see format.EachKeyed
//	state    index of a state in the handle, or -1 for all
//	first    first element, key group or chunk
//	count    their number, or -1 for all that follow
//	target   name of the file that is written, or ""
//	parts    array of [stream, offset, size]: the identity of a stream, see Identity,
//	         and the bytes of it; a size of -1 is all that follow
//
// A reader refuses another version, another number of fields and trailing bytes.
package work
