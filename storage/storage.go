package storage

import (
	"context"
	"io"
	"iter"
	"time"
)

// Version names one content of an object: an ETag, a generation, or
// device:inode:size:mtime. It is only ever compared for equality. As a pin,
// "" means whatever is there now.
type Version string

// Info describes an object. A common prefix that List reports has only a Name.
type Info struct {
	Name    string
	Size    int64
	ModTime time.Time
	Version Version
}

// Storage is a flat set of named objects. It is safe for concurrent use.
type Storage interface {
	// ReadRange opens n bytes at off and describes the whole object. A negative
	// off counts from the end (-8 is the last eight bytes; before the start means
	// the start), a negative n reads to the end. The range is cut at the end of
	// the object, so it may be empty. An object that is not at the pinned version
	// returns ErrChanged, here or from the body; a body that stops early is either
	// an error or, as networks go, a plain io.EOF: Reader tells them apart.
	ReadRange(ctx context.Context, name string, off, n int64, pin Version) (io.ReadCloser, Info, error)

	// Stat describes an object. A directory is not an object: ErrNotExist.
	Stat(ctx context.Context, name string) (Info, error)

	// List yields the objects whose names begin with prefix, ordered by the bytes
	// of the name. With a delimiter, names that contain it after the prefix are
	// yielded once, as the common prefix up to and including the delimiter.
	// No match is an empty list. An error is the last thing yielded.
	List(ctx context.Context, prefix, delimiter string) iter.Seq2[Info, error]

	// Create begins an object, of which nothing is visible under its name before
	// Commit. The context also ends the writes.
	Create(ctx context.Context, name string, o CreateOptions) (Writer, error)

	// Delete removes objects by name. A name that is not there is no error; after
	// an error the remaining names are still tried.
	Delete(ctx context.Context, names ...string) error
}

// CreateOptions says how an object is created.
type CreateOptions struct {
	// IfAbsent makes Commit fail with ErrExist rather than replace. It is atomic:
	// of several concurrent creators one wins. A store that already knows may
	// fail in Create.
	IfAbsent bool
	// Replace makes Commit replace only the object of this version: ErrChanged
	// where there is another, or none. "" replaces whatever is there.
	Replace Version
	// Size is the exact number of bytes to come if it is known, which lets a store
	// refuse early with ErrNoSpace; Commit then fails for any other number.
	// 0 or less: unknown.
	Size int64
}

// Writer writes one object, in order. It is not safe for concurrent use. It does
// not buffer: write large pieces. After a failed Write everything but Abort
// fails.
type Writer interface {
	io.Writer
	// Commit makes the object durable, and then visible under its name. When it
	// fails the object may be there, but never in part.
	Commit(ctx context.Context) (Info, error)
	// Abort drops the object and whatever Create made for it. After a Commit that
	// succeeded, or a second time, it does nothing, so it can be deferred. It
	// works with a context that is over.
	Abort(ctx context.Context) error
}

// Copier is an optional ability of a destination store: copying a range into one
// of its writers without moving the bytes through this process. Unlike a read,
// a range past the end is an error. Use CopyRange, which falls back.
type Copier interface {
	CopyRange(ctx context.Context, w Writer, src Storage, name string, off, n int64, pin Version) error
}

// Resolver is an optional ability: a reference inside a snapshot may point into
// another store.
type Resolver interface {
	Resolve(ctx context.Context, uri string) (Storage, string, error)
}

// Mover is an optional ability: renaming objects and directories with all in them.
// Object stores do not have it.
type Mover interface {
	// Move renames, never onto something that exists.
	Move(ctx context.Context, old, new string) error
	// Exchange swaps what two names refer to, in one step. It is
	// ErrUnsupported, and changes nothing, where the system or the file system
	// has no such call.
	Exchange(ctx context.Context, a, b string) error
}

// Remover is an optional ability: removing directories that this program made or
// emptied. Object stores do not have it, on purpose: there a listing may hold
// what others wrote.
type Remover interface {
	// RemoveTree removes a directory with all in it. It follows no links.
	RemoveTree(ctx context.Context, name string) error
	// RemoveEmpty removes a directory, and fails where anything is in it.
	RemoveEmpty(ctx context.Context, name string) error
}

// Namer is an optional ability: the URI of an object or a directory, by which programs
// on any machine that has the store refer to it. It is the same for all names that
// lead to the object. Use URI, which falls back.
type Namer interface {
	URI(ctx context.Context, name string) (string, error)
}

// SpaceReporter is an optional ability: how many bytes may still be written where
// name would be stored.
type SpaceReporter interface {
	FreeSpace(ctx context.Context, name string) (int64, error)
}
