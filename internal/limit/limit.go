// Package limit has the names of the limits of format.Limits, for errors that
// report an exceeded limit.
package limit

import "github.com/savepoint-tools/spt/format"

// The limits, by their names in commands.
const (
	Operators format.Limit = "operators"
	Subtasks  format.Limit = "subtasks"
	Nodes     format.Limit = "nodes"
	Depth     format.Limit = "depth"
	Manifest  format.Limit = "manifest"
	Chunk     format.Limit = "chunk"
	Memory    format.Limit = "memory"
	Offsets   format.Limit = "offsets"
	ChunkRefs format.Limit = "chunk-refs"
	Value     format.Limit = "value"
)
