package writer

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// Options of Prepare and Write. The zero value copies everything and makes the
// result self-contained. A value that no option has is an error.
type Options struct {
	Stores storage.Resolver // nil: local files
	// Family of the target; "": an .spt if its name ends so, else a Flink directory.
	Family reader.Family
	// Files says what becomes of state files in a Flink directory.
	Files Files
	// KeepReferences leaves every reference as it is: the same _metadata.
	// Files named by absolute references are not written.
	KeepReferences bool
	// KeepMissing keeps references to files that are not available, instead of
	// refusing.
	KeepMissing bool
	// InlineThreshold moves inline state larger than this out of _metadata into
	// files of its own: at 0 all that has bytes, at nil none. The coordinators'
	// state stays.
	InlineThreshold *int64
	// MetadataVersion of a Flink directory; 0: that of the input.
	MetadataVersion int32
	// Compression and Level of an .spt.
	Compression spt.Compression
	Level       int
	// Overwrite takes a target that is a snapshot already.
	Overwrite bool
	// ReadBack reads everything again before the target becomes visible.
	ReadBack bool
	// Jobs is how many files or chunks are worked on at once; 0: 4.
	Jobs int
	// Progress is called with the number of bytes read; it may be nil and must be safe
	// for concurrent use.
	Progress func(n int64)
}

// withDefaults returns the options with defaults, or an error for a value that is
// not valid.
func (opts *Options) withDefaults() (Options, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	var err error
	switch o.Family {
	case "", reader.Flink, reader.SPT:
	default:
		err = invalid("Family %q: expected %s or %s", o.Family, reader.Flink, reader.SPT)
	}
	if o.Files == "" {
		o.Files = Copy
	}
	if _, ferr := ParseFiles(string(o.Files)); ferr != nil {
		err = invalid("Files: %v", ferr)
	}
	if _, cerr := spt.ParseCompression(string(o.Compression)); cerr != nil {
		err = invalid("Compression: %v", cerr)
	}
	if o.InlineThreshold != nil && *o.InlineThreshold < 0 {
		err = invalid("InlineThreshold %d: expected 0 or more", *o.InlineThreshold)
	}
	if o.Jobs < 0 {
		err = invalid("Jobs %d: expected 0 or more", o.Jobs)
	}
	if err != nil {
		return o, err
	}
	if o.Stores == nil {
		o.Stores = route.New(local.New())
	}
	if o.Jobs == 0 {
		o.Jobs = 4
	}
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	return o, nil
}

// invalid is the error for an option.
func invalid(msg string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(msg, args...), format.ErrUnsupported)
}

// Files says what becomes of the state files of a Flink snapshot.
type Files string

// The ways.
const (
	Copy      Files = "copy"      // each is copied next to the new _metadata
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
