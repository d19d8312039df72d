package summary

import "github.com/savepoint-tools/spt/format"

// Kind says what a snapshot is, by what it says of itself and, where it says
// nothing, by its handles.
type Kind struct {
	// Type is "savepoint", "checkpoint", or "snapshot" where the file does not
	// say which (before metadata version 4).
	Type string
	// Stopped: a savepoint taken to stop the job.
	Stopped bool
	// Format is "canonical" or "native" for a savepoint, "full" or
	// "incremental" for a checkpoint, "" where nothing tells.
	Format string
	// Changelog: keyed state is a materialised part and the changes since.
	Changelog bool
	// Unaligned: in-flight data is part of it.
	Unaligned bool
}

// KindOf finds out what a savepoint is.
func KindOf(sp *format.Savepoint) Kind {
	var incremental, full, canonical bool
	var k Kind
	var see func(format.KeyedHandle)
	see = func(h format.KeyedHandle) {
		switch h := h.(type) {
		case *format.KeyGroups:
			canonical = canonical || h.Savepoint
			full = full || !h.Savepoint
		case *format.Incremental:
			incremental = true
		case *format.Changelog:
			k.Changelog = true
			for _, m := range h.Materialized {
				see(m)
			}
		case *format.ChangelogMemory, *format.ChangelogStream:
			k.Changelog = true
		}
	}
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			see(sub.ManagedKeyed)
			k.Unaligned = k.Unaligned || len(sub.Input)+len(sub.Output) > 0
		}
	}
	t := sp.Kind.Type
	switch {
	case t.IsSavepoint():
		k.Type = "savepoint"
		k.Stopped = t != format.TypeSavepoint
		k.Format = sp.Kind.Format.String()
	case t == format.TypeUnknown:
		k.Type = "snapshot"
		switch {
		case incremental:
			k.Format = "incremental"
		case canonical && !full:
			// Tag 7 came with savepoints and nothing else writes it, though
			// 1.15 used it for native ones too (spec flink-metadata 8.10).
			k.Type = "savepoint"
		}
	default:
		k.Type = "checkpoint"
		switch {
		case incremental:
			k.Format = "incremental"
		case t == format.TypeFullCheckpoint || full:
			k.Format = "full"
		}
	}
	return k
}
