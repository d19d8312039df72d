package storage

import (
	"context"
	"io"
	"iter"
	"time"
)

// Version identifies the content of an object: an ETag, a generation, or
// device:inode:size:mtime. Versions are only compared for equality. As a pin, ""
// means the current version.
type Version string

// Info describes an object. A common prefix yielded by List has only a Name.
type Info struct {
	Name    string
	Size    int64
	ModTime time.Time
	Version Version
}

// Storage is a flat set of named objects. It is safe for concurrent use.
//
// A store of URIs names its objects by URI, "s3://bucket/a/b", in one spelling for
// each object: however a Resolver was asked for it, "s3a://bucket/a/b" has the same
// name. What follows the bucket is the key, never cleaned and never decoded.
type Storage interface {
	// ReadRange opens n bytes at off and describes the whole object. A negative off
	// counts from the end (-8 is the last eight bytes; before the start means the
	// start), a negative n reads to the end. The range is clipped at the end of the
	// object, so it may be empty. If the object does not have the pinned version,
	// ReadRange or the body returns ErrChanged. A body that stops early may return an
	// error or, as networks do, a plain io.EOF: Reader detects that.
	ReadRange(ctx context.Context, name string, off, n int64, pin Version) (io.ReadCloser, Info, error)

	// Stat describes an object. A directory is not an object: ErrNotExist.
	Stat(ctx context.Context, name string) (Info, error)

	// List yields the objects whose names begin with prefix, ordered by the bytes
	// of the name. With a delimiter, names that contain it after the prefix are
	// yielded once, as the common prefix up to and including the delimiter.
	// No match is an empty list. An error is the last thing yielded.
	List(ctx context.Context, prefix, delimiter string) iter.Seq2[Info, error]

	// Create begins an object. Nothing is visible under its name before Commit. The
	// context also applies to the writes.
	Create(ctx context.Context, name string, o CreateOptions) (Writer, error)

	// Delete removes objects by name. A missing object is not an error; after an
	// error the remaining names are still tried.
	Delete(ctx context.Context, names ...string) error
}

// CreateOptions are the options of Create.
type CreateOptions struct {
	// IfAbsent makes Commit fail with ErrExist rather than replace. It is atomic: of
	// several concurrent creators one wins. Create may already fail.
	IfAbsent bool
	// Replace makes Commit replace only an object of this version: it returns
	// ErrChanged if there is another, or none. "" replaces any version.
	Replace Version
	// Size is the exact number of bytes to be written, which lets a store refuse
	// early with ErrNoSpace; Commit then fails for any other number. 0 or less means
	// unknown.
	Size int64
}

// Writer writes one object, in order. It is not safe for concurrent use. It does
// not buffer: write large pieces. After a failed Write every call but Abort
// fails.
type Writer interface {
	io.Writer
	// Commit makes the object durable, and then visible under its name. If it fails,
	// the object may exist, but never in part. ModTime is zero if the service does not
	// return it here.
	Commit(ctx context.Context) (Info, error)
	// Abort removes the object and whatever Create made for it. After a successful
	// Commit, or when called again, it does nothing, so it can be deferred. It works
	// after the context has ended.
	Abort(ctx context.Context) error
}

// Copier is an optional ability of a destination store: copying a range into one
// of its writers without moving the bytes through this process. Unlike in a read,
// a range past the end is an error. A whole object, 0 and -1, with a pin into a
// writer whose CreateOptions.Size is the size of the object, takes no request before
// Commit, and one there.
type Copier interface {
	CopyRange(ctx context.Context, w Writer, src Storage, name string, off, n int64, pin Version) error
}

// Resolver finds the store of a path or URI and the object's name in it:
// references in a snapshot may lead to another store.
type Resolver interface {
	Resolve(ctx context.Context, uri string) (Storage, string, error)
}

// Mover is an optional ability: renaming objects, and directories with their
// content. Object stores do not have it.
type Mover interface {
	// Move renames, but never onto an existing name.
	Move(ctx context.Context, old, new string) error
	// Exchange swaps two names atomically. It returns ErrUnsupported, and changes
	// nothing, if the system or the file system cannot.
	Exchange(ctx context.Context, a, b string) error
}

// Remover is an optional ability: removing directories that this program made or
// emptied. Object stores deliberately do not have it: there a listing may contain
// objects that others wrote.
type Remover interface {
	// RemoveTree removes a directory and its content. It follows no links.
	RemoveTree(ctx context.Context, name string) error
	// RemoveEmpty removes a directory, and fails if it is not empty.
	RemoveEmpty(ctx context.Context, name string) error
}

// ConditionReporter is an optional ability: how the conditions of Create are decided.
// A store without it decides them atomically.
type ConditionReporter interface {
	// AtomicConditions reports whether IfAbsent and Replace are atomic for an object.
	// If not, the store looks for the object, and then writes it: another writer can
	// come in between.
	AtomicConditions(name string) bool
}

// Namer is an optional ability: the URI of an object or a directory, by which
// programs on any machine with access to the store refer to it. All names that
// lead to an object have the same URI. Use URI, which falls back.
type Namer interface {
	URI(ctx context.Context, name string) (string, error)
}

// SpaceReporter is an optional ability: the number of bytes that can still be
// written where name would be stored.
type SpaceReporter interface {
	FreeSpace(ctx context.Context, name string) (int64, error)
}

// Access is how a store reaches its service. It has no secrets.
type Access struct {
	Service     string        // "S3"
	Endpoint    string        // "https://s3.eu-central-1.amazonaws.com"
	Region      string        // "" if the service has none, or it is unknown
	Credentials string        // where they were found, "profile prod of ~/.aws/credentials"; "none" for anonymous access
	Identity    string        // the account or key id that they name; "" if unknown
	Details     []string      // settings of the service, "path style addresses"
	Clock       time.Duration // how far the service's clock is ahead, by one request; see Clocked
	Clocked     bool
}

// AccessReporter is an optional ability: how the objects under a name are reached.
type AccessReporter interface {
	Access(ctx context.Context, name string) (Access, error)
}

// Retry is a request that failed and will be made again.
type Retry struct {
	Op, Name string
	Attempt  int           // the one that failed, from 1
	Wait     time.Duration // until the next one
	Err      error
}
