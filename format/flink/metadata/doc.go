// Package metadata reads and writes Flink's _metadata file, versions 2 to 6
// (spec flink-metadata). A file that is decoded and encoded again has the same bytes.
// It does not read state files: see packages opstate, keyed and types.
//
//	sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
//	err = metadata.Encode(ctx, w, sp, nil)
//
// The layout, all numbers big-endian, utf = 2-byte length and modified UTF-8:
//
//	file      magic i4 49 60 67 2D, version i4, checkpointId i8,
//	          masterCount i4, masters, operatorCount i4, operators,
//	          properties (4+: a Java object, to the end of the file)
//	master    magic i4 C9 6B 16 96, length i4, version i4, name utf, data i4+n
//	operator  name utf, uid utf (5+), id 16 bytes, parallelism i4,
//	          maxParallelism i4, chainLength i4 (2 only),
//	          coordinator stream (3+), subtaskCount i4 (-1: finished), subtasks
//	subtask   index i4 (< 0: finished, nothing follows), duration i8 (2 only),
//	          legacy i4+streams (2 only), managed i4 0|1 + handle,
//	          raw i4 0|1 + handle, managed keyed, raw keyed,
//	          input channels i4+n, output channels i4+n (3+)
//
// The layout of handles is in decode_handles.go. Three layouts changed inside version 3
// without a new version number; [Decode] tries each until one reads the file exactly to
// its end.
//
// Offsets and inline bytes of the result are views of the input, which must not change
// while the result is in use.
package metadata
