// Package spt reads and writes .spt files. An .spt file holds a whole savepoint,
// compressed in chunks that can be read separately. docs/format.md specifies it
// byte by byte.
//
// A file is a header, consecutive chunks, a manifest that describes them, and a
// trailer that points to the manifest. Chunks with equal content are stored once,
// so union and broadcast state, which every subtask holds, takes its space once.
//
// [Write] writes a savepoint in one call; [NewWriter] writes it step by step.
// [Open] returns a [File], which has the model and is the [format.Source] of its
// streams.
//
//	sp, stats, err := spt.Write(ctx, out, in, source, nil, spt.Options{})
//	...
//	f, err := spt.Open(ctx, r, size, format.Limits{})
//	for _, op := range f.Savepoint().Operators {
//		...
//	}
//
// The package does no I/O of its own: it writes to an io.Writer and reads from a
// [ReaderAt]. It does not interpret the content of streams; codecs do, such as
// format/flink/opstate and format/spt/native.
package spt
