package summary

import "github.com/savepoint-tools/spt/format"

// Kind is the kind of a snapshot, as recorded or, if it is not recorded, derived
// from its handles.
type Kind struct {
	// Type is "savepoint", "checkpoint", or "snapshot" if unknown (before metadata
	// version 4).
	Type string
	// Stopped: the savepoint was taken to stop the job.
	Stopped bool
	// Format is "canonical" or "native" for a savepoint, "full" or "incremental"
	// for a checkpoint, "" if unknown.
	Format string
	// Changelog: keyed state consists of a materialized part and the changes since
	// then.
	Changelog bool
	// Unaligned: the snapshot contains in-flight data.
	Unaligned bool
}

// KindOf returns the kind of a savepoint.
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
			// Only savepoints have tag 7, although 1.15 used it for native ones too
			// (spec flink-metadata 8.10).
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
