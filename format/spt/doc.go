// Package spt reads and writes .spt files: one file that holds a whole
// savepoint, compressed in chunks that can each be read alone. docs/format.md
// is the specification, byte by byte.
//
// A file is a header, chunks back to back, a manifest that describes them, and
// a trailer that points to the manifest. A chunk whose content was already
// stored is not stored again, so the copies that union and broadcast state
// leaves in every subtask cost nothing.
//
// [Write] makes a file of any savepoint in one call; [NewWriter] is the
// step-by-step form under it. [Open] gives the model back, and the [File] is
// the [format.Source] of its streams.
//
//	sp, stats, err := spt.Write(ctx, out, in, source, nil, spt.Options{})
//	...
//	f, err := spt.Open(ctx, r, size, format.Limits{})
//	for _, op := range f.Savepoint().Operators {
//		...
//	}
//
// The package does no I/O of its own: it writes to an io.Writer and reads from
// a [ReaderAt]. It knows nothing of what the streams hold; codecs do, such as
// internal/flink/opstate and format/spt/native.
package spt
