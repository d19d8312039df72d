package format

import "math"

// Limits bound the memory that a decoder allocates, and the work that it does, for
// the counts and lengths that a file claims. Zero fields mean the defaults.
type Limits struct {
	// Operators in one snapshot. Default 1,000,000.
	Operators int
	// Subtasks of one operator; Flink allows 32,768. Default 32,768.
	Subtasks int
	// Nodes is the number of operators, subtasks, handles and streams together.
	// Default 16,000,000 (a few gigabytes of model).
	Nodes int
	// Depth of nested handles; Flink nests two or three deep. Default 16.
	Depth int
	// Manifest is the size of an .spt manifest once decompressed. Default 1 GiB.
	Manifest int64
	// Chunk is the size of one .spt chunk once decompressed. Default 8 MiB + 16
	// times the size of the file, at most 64 MiB; this module writes up to 4 MiB.
	Chunk int64
	// Memory is the number of bytes that opening an .spt file may take: the
	// manifest, the model and temporary data. Default 64 MiB + 16 times the size of
	// the file.
	Memory int64
	// Offsets is the number of entries in all distinct offset arrays of an .spt
	// file that are stored in chunks. Default 1,048,576 + 512 for each byte of the
	// file.
	Offsets int64
	// ChunkRefs is the number of chunks that the chunk lists of an .spt file name
	// together; a list of few bytes can name many. Default 4,194,304 + 16 for each
	// byte of the file.
	ChunkRefs int64
	// Value is the size of an element, a map or an entry of state in spt's own
	// encoding. Default 64 MiB + 16 times the size of the file, at most 1 GiB.
	Value int64
}

// limitField is one limit: its name, its field, and its default for a file of size
// bytes.
type limitField struct {
	name  Limit
	field func(*Limits) any // *int or *int64
	value func(size int64) int64
}

func fixed(n int64) func(int64) int64 { return func(int64) int64 { return n } }

// limitFields has all limits.
var limitFields = []limitField{
	{"operators", func(l *Limits) any { return &l.Operators }, fixed(1_000_000)},
	{"subtasks", func(l *Limits) any { return &l.Subtasks }, fixed(32_768)},
	{"nodes", func(l *Limits) any { return &l.Nodes }, fixed(16_000_000)},
	{"depth", func(l *Limits) any { return &l.Depth }, fixed(16)},
	{"manifest", func(l *Limits) any { return &l.Manifest }, fixed(1 << 30)},
	{"chunk", func(l *Limits) any { return &l.Chunk }, func(size int64) int64 { return min(64<<20, 8<<20+16*size) }},
	{"memory", func(l *Limits) any { return &l.Memory }, func(size int64) int64 { return 64<<20 + 16*size }},
	{"offsets", func(l *Limits) any { return &l.Offsets }, func(size int64) int64 { return 1<<20 + 512*size }},
	{"chunk-refs", func(l *Limits) any { return &l.ChunkRefs }, func(size int64) int64 { return 1<<22 + 16*size }},
	{"value", func(l *Limits) any { return &l.Value }, func(size int64) int64 { return min(1<<30, 64<<20+16*size) }},
}

// set sets a limit to v; with ifZero only if it is zero.
func (f limitField) set(l *Limits, v int64, ifZero bool) {
	switch p := f.field(l).(type) {
	case *int:
		if !ifZero || *p == 0 {
			*p = int(min(v, math.MaxInt32))
		}
	case *int64:
		if !ifZero || *p == 0 {
			*p = v
		}
	}
}

// WithDefaults returns the limits with zeros replaced by the defaults for a file of
// size bytes.
func (l Limits) WithDefaults(size int64) Limits {
	size = min(max(size, 0), 1<<50) // prevents overflow
	for _, f := range limitFields {
		f.set(&l, f.value(size), true)
	}
	return l
}

// Set sets the limit with this name. It reports whether the limit exists.
func (l *Limits) Set(name Limit, v int64) bool {
	for _, f := range limitFields {
		if f.name == name {
			f.set(l, v, false)
			return true
		}
	}
	return false
}
