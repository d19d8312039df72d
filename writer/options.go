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

// Options are the options of Prepare and Write. The zero value copies everything,
// so the result is self-contained. Unknown values are errors.
type Options struct {
	Stores storage.Resolver // nil: local files
	// Family is the family of the target; "" means an .spt file if its name ends in
	// .spt, else a Flink directory.
	Family reader.Family
	// Files is how state files of a Flink directory are written.
	Files Files
	// KeepReferences keeps every reference, and so _metadata, unchanged. Files named
	// by absolute references are not written.
	KeepReferences bool
	// KeepMissing keeps references to files that are not available, instead of
	// returning an error.
	KeepMissing bool
	// InlineThreshold is the size in bytes above which inline state is moved out of
	// _metadata into files: 0 moves all that is not empty, nil none. State of
	// coordinators stays inline.
	InlineThreshold *int64
	// MetadataVersion is the version of a Flink directory; 0 means the input's
	// version.
	MetadataVersion int32
	// Compression and Level apply to an .spt file.
	Compression spt.Compression
	Level       int
	// Overwrite replaces a target that is a snapshot.
	Overwrite bool
	// ReadBack reads everything again before the target becomes visible.
	ReadBack bool
	// Jobs is the number of files or chunks processed at once; 0 means 4, and 16 for
	// files that the service of the target's store copies by itself.
	Jobs int
	// Progress is called with the number of bytes read; it may be nil and must be safe
	// for concurrent use.
	Progress func(n int64)
}

// withDefaults returns the options with defaults filled in, or an error for an
// invalid value.
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

// invalid returns the error for an option.
func invalid(msg string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(msg, args...), format.ErrUnsupported)
}

// Files is how the state files of a Flink snapshot are written.
type Files string

// The values of Files.
const (
	Copy      Files = "copy"      // copy each next to the new _metadata
	Link      Files = "link"      // hard link if the file system can, else copy
	Reference Files = "reference" // leave in place, with absolute references
)

// ParseFiles parses a value of Files.
func ParseFiles(s string) (Files, error) {
	switch f := Files(s); f {
	case Copy, Link, Reference:
		return f, nil
	}
	return "", fmt.Errorf("%q is not one of copy, link, reference", s)
}
