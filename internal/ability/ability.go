// Package ability has the optional abilities of stores that only a file system has:
// links, directories with an identity, memory mapping, leftovers of interrupted runs.
// Callers ask with a type assertion, and do without where a store has none. What an
// object store can have too is in package storage.
package ability

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/savepoint-tools/spt/storage"
)

// Mapper is an optional ability: an object as memory.
type Mapper interface {
	Map(ctx context.Context, name string, pin storage.Version) (*Mapped, error)
}

// Mapped is an object as memory. Data must not be written to, and is invalid after
// Close. If the file underneath becomes shorter, an access to Data is a fault that
// would end the process: access it as format.MappedBytes.
type Mapped struct {
	Data []byte
	Info storage.Info
	// Release unmaps. It reports ErrChanged if the file changed since Map.
	Release func() error
}

// Close unmaps, and reports ErrChanged if the object is no longer what was
// mapped: then what was decoded from it must not be used. The second call does
// nothing.
func (m *Mapped) Close() error {
	f := m.Release
	m.Data, m.Release = nil, nil
	if f == nil {
		return nil
	}
	return f()
}

// Streamer is an optional ability: reading from its beginning what may have no
// size and can be read once, such as a pipe. It may wait for the one that writes to
// it, and then does not look at the context.
type Streamer interface {
	Stream(ctx context.Context, name string) (io.ReadCloser, error)
}

// Linker is an optional ability: a second name for an object that src holds, at
// no cost. The names share their bytes. Object stores do not have it.
type Linker interface {
	Link(ctx context.Context, dst string, src storage.Storage, name string, pin storage.Version, ifAbsent bool) (storage.Info, error)
}

// Holder is an optional ability: marking a directory as in use by this process,
// until release is called or the process ends, however that happens. A directory
// that is not there is made if create is set. Leftovers that are held are not
// removed. Where a system cannot mark, only the age of a leftover protects it.
type Holder interface {
	Hold(ctx context.Context, name string, create bool) (release func() error, err error)
}

// LinkReader is an optional ability: telling where a symbolic link leads; "" for
// what is not one, or not there.
type LinkReader interface {
	ReadLink(ctx context.Context, name string) (string, error)
}

// Canonicalizer is an optional ability: the one name that an object or a directory
// has whatever links and relative names lead to it, so that two names can be
// compared. What does not exist yet is named below the nearest directory that does.
// The elements are divided by "/". Stores whose names are unique do not have it.
type Canonicalizer interface {
	Canonical(ctx context.Context, name string) (string, error)
}

// URI returns the URI of an object or a directory of s. given is how the user named
// it, which is the result where s does not have the ability: names of object stores
// are URIs.
func URI(ctx context.Context, s storage.Storage, name, given string) (string, error) {
	if n, ok := s.(storage.Namer); ok {
		return n.URI(ctx, name)
	}
	return given, nil
}

// Directory is a directory whose identity is known, so that another one under its name
// is noticed. The zero Version matches any directory of that name.
type Directory struct {
	Name    string
	Version storage.Version
}

// Confiner is an optional ability: describing an object only if it is in a
// directory. A symbolic link that leads out of the directory is an error, also one that
// is put in the way of the object meanwhile. Because an Info has the Version of
// the object, later reads with that pin read no other one, whatever became of its
// name. Stores without links do not have it.
type Confiner interface {
	// Folder returns the identity of a directory. A link to a directory is ErrNotExist.
	Directory(ctx context.Context, name string) (Directory, error)
	// StatBelow is Stat of a name relative to a directory. It is ErrChanged if the
	// directory is another one now, or if a link leads out of it.
	StatBelow(ctx context.Context, dir Directory, name string) (storage.Info, error)
}

// BelowDeleter is an optional ability: deleting a file only from the directory that was
// described, and only the version that was. Whatever links were put in its way, nothing
// else is deleted: it is ErrChanged if the directory or the file is another one now, and
// for a symbolic link. A file that is not there is ErrNotExist.
type BelowDeleter interface {
	DeleteBelow(ctx context.Context, dir Directory, name string, pin storage.Version) error
}

// Leftover is what an interrupted run left: a file, or a directory with all in it.
type Leftover struct {
	Name    string
	Files   int
	Bytes   int64
	ModTime time.Time // the newest of all in it
	InUse   bool      // by a process that runs, as far as the system can tell
	// Foreign says why it is not what spt leaves, although it has such a name.
	Foreign string
	// Displaced is the name of which this holds the snapshot, where there is
	// nothing under that name: see tempname.Aside.
	Displaced string
}

// Cleaner is an optional ability: finding and removing what interrupted runs
// left. Nothing follows links. Object stores do not have it: they leave nothing
// under a name of its own.
type Cleaner interface {
	// Leftover describes one.
	Leftover(ctx context.Context, name string) (Leftover, error)
	// Leftovers yields those below a directory, down to so many directories; or name
	// itself, if that is one. A directory that cannot be read is yielded with its
	// error, and does not end the list.
	Leftovers(ctx context.Context, name string, depth int) iter.Seq2[Leftover, error]
	// RemoveLeftover removes one that is as it was described: not foreign, not
	// in use, not written since (ErrChanged).
	RemoveLeftover(ctx context.Context, l Leftover) error
}

// Contents is an optional ability of a Writer: what was written so far, read-only,
// so that it can be decoded again before it becomes visible. Call release before
// the next call on the writer; data is invalid after it.
type Contents interface {
	Contents() (data []byte, release func() error, err error)
}
