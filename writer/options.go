package writer

import (
	"fmt"

	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// Options of Prepare and Seal. The zero value, but for Stores, copies
// everything and makes the result self-contained.
type Options struct {
	Stores storage.Resolver // nil: local files
	// Family of the target; "": an .spt if its name ends so, else a Flink folder.
	Family reader.Family
	// Files says what becomes of state files in a Flink folder.
	Files Files
	// KeepReferences leaves every reference as it is: the same _metadata.
	// Files named by absolute references are not written.
	KeepReferences bool
	// KeepMissing keeps references to files that are not to be had, instead of
	// refusing.
	KeepMissing bool
	// InlineThreshold moves inline state larger than this out of _metadata into
	// files of its own: at 0 all that has bytes, at nil none. The coordinators'
	// state stays.
	InlineThreshold *int64
	// MetadataVersion of a Flink folder; 0: that of the input.
	MetadataVersion metadata.Version
	// Compression and Level of an .spt.
	Compression spt.Compression
	Level       int
	// Overwrite takes a target that is a snapshot already.
	Overwrite bool
	// ReadBack reads everything again before the target becomes visible.
	ReadBack bool
	// Jobs is how many files or chunks are worked on at once; 0: 4.
	Jobs int
	// Progress is told the number of bytes read; it may be nil and must be safe
	// for concurrent use.
	Progress func(n int64)
}

func (opts *Options) withDefaults() Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Stores == nil {
		o.Stores = route.New(local.New())
	}
	if o.Jobs <= 0 {
		o.Jobs = 4
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	if o.Files == "" {
		o.Files = Copy
	}
	return o
}

// Files says what becomes of the state files of a Flink snapshot.
type Files string

// The ways.
const (
	Copy      Files = "copy"      // each is copied beside the new _metadata
	Link      Files = "link"      // hard links where the file system can, else copies
	Reference Files = "reference" // they stay where they are, named absolutely
)

// ParseFiles reads the value of --files.
func ParseFiles(s string) (Files, error) {
	switch f := Files(s); f {
	case Copy, Link, Reference:
		return f, nil
	}
	return "", fmt.Errorf("%q is not one of copy, link, reference", s)
}
