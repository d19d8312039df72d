package format

// Limits bound what a decoder allocates on the word of a file. The zero value
// of a field means its default.
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
	// Chunk is the size of one .spt chunk once decompressed. Default 64 MiB.
	Chunk int64
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&l.Operators, 1_000_000)
	set(&l.Subtasks, 32_768)
	set(&l.Nodes, 16_000_000)
	set(&l.Depth, 16)
	if l.Manifest == 0 {
		l.Manifest = 1 << 30
	}
	if l.Chunk == 0 {
		l.Chunk = 64 << 20
	}
	return l
}
