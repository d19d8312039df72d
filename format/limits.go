package format

import "math"

// Limits bound what a decoder allocates, and how long it works, on the word of a
// file. The zero value of a field means its default.
type Limits struct {
	// Operators in one snapshot. Default 1,000,000.
	Operators int
	// Subtasks of one operator; engines allow 32,768. Default 32,768.
	Subtasks int
	// Nodes is the number of operators, subtasks, handles and streams together.
	// Default 16,000,000 (a few gigabytes of model).
	Nodes int
	// Depth of nested handles; real files nest two or three deep. Default 16.
	Depth int
	// Manifest is the size of an .spt manifest once decompressed. Default 1 GiB.
	Manifest int64
	// Chunk is the size of one .spt chunk once decompressed. Default 8 MiB + 16
	// times the size of the file, at most 64 MiB; this module writes up to 4 MiB.
	Chunk int64
	// Memory is what opening an .spt file may take, in bytes: the manifest, the
	// model made of it and what is needed on the way. Default 64 MiB + 16 times
	// the size of the file.
	Memory int64
	// Offsets is the number of entries in all different arrays of offsets of an
	// .spt file that are stored in chunks. Default 1,048,576 + 512 for each byte
	// of the file.
	Offsets int64
	// ChunkRefs is how many chunks the chunk lists of an .spt file name together;
	// a list of few bytes can name many. Default 4,194,304 + 16 for each byte of
	// the file.
	ChunkRefs int64
	// Value is the size of an element, a map or an entry of state in spt's own
	// encoding. Default 64 MiB + 16 times the size of the file, at most 1 GiB.
	Value int64
}

// WithDefaults fills in what is zero, for a file of size bytes.
func (l Limits) WithDefaults(size int64) Limits {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set64 := func(p *int64, v int64) {
		if *p == 0 {
			*p = v
		}
	}
	size = min(max(size, 0), 1<<50) // so that nothing below overflows
	set(&l.Operators, 1_000_000)
	set(&l.Subtasks, 32_768)
	set(&l.Nodes, 16_000_000)
	set(&l.Depth, 16)
	set64(&l.Manifest, 1<<30)
	set64(&l.Chunk, min(64<<20, 8<<20+16*size))
	set64(&l.Memory, 64<<20+16*size)
	set64(&l.Offsets, 1<<20+512*size)
	set64(&l.ChunkRefs, 1<<22+16*size)
	set64(&l.Value, min(1<<30, 64<<20+16*size))
	return l
}

// Set sets the limit of this name; ok is false if there is none.
func (l *Limits) Set(name Limit, v int64) (ok bool) {
	n := int(min(v, math.MaxInt32))
	switch name {
	case LimitOperators:
		l.Operators = n
	case LimitSubtasks:
		l.Subtasks = n
	case LimitNodes:
		l.Nodes = n
	case LimitDepth:
		l.Depth = n
	case LimitManifest:
		l.Manifest = v
	case LimitChunk:
		l.Chunk = v
	case LimitMemory:
		l.Memory = v
	case LimitOffsets:
		l.Offsets = v
	case LimitChunkRefs:
		l.ChunkRefs = v
	case LimitValue:
		l.Value = v
	default:
		return false
	}
	return true
}
