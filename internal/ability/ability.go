// Package ability has the optional abilities of stores that only a file system
// has: links, directories with an identity, memory mapping, leftovers of
// interrupted runs. Callers use a type assertion, and fall back if a store lacks
// the ability. Abilities that object stores can have are in package storage.
package ability

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Mapper is an optional ability: mapping an object into memory.
type Mapper interface {
	Map(ctx context.Context, name string, pin storage.Version) (*Mapped, error)
}

// Mapped is an object mapped into memory. Data is read-only and invalid after
// Close. If the underlying file is truncated, an access to Data faults and would
// end the process: access it as format.MappedBytes.
type Mapped struct {
	Data []byte
	Info storage.Info
	// Release unmaps. It returns ErrChanged if the file changed since Map.
	Release func() error
}

// Close unmaps, and returns ErrChanged if the object changed since it was mapped:
// then what was decoded from it must not be used. The second call does nothing.
func (m *Mapped) Close() error {
	f := m.Release
	m.Data, m.Release = nil, nil
	if f == nil {
		return nil
	}
	return f()
}

// Streamer is an optional ability: reading an object that may have no size and
// can be read only once, such as a pipe. It may block until the pipe is written
// to, regardless of the context.
type Streamer interface {
	Stream(ctx context.Context, name string) (io.ReadCloser, error)
}

// Linker is an optional ability: a second name for an object of src, without
// copying. The names share their bytes. Object stores do not have it.
type Linker interface {
	Link(ctx context.Context, dst string, src storage.Storage, name string, pin storage.Version, ifAbsent bool) (storage.Info, error)
}

// Holder is an optional ability: marking a directory as in use by this process,
// until release is called or the process ends in any way. A missing directory is
// created if create is set. Leftovers that are held are not removed. If the
// system cannot mark, only the age of a leftover protects it.
type Holder interface {
	Hold(ctx context.Context, name string, create bool) (release func() error, err error)
}

// LinkReader is an optional ability: returning the target of a symbolic link; ""
// if the name is not a link or does not exist.
type LinkReader interface {
	ReadLink(ctx context.Context, name string) (string, error)
}

// Canonicalizer is an optional ability: the name of an object or a directory with
// links and relative elements resolved, so that two names can be compared. An
// object that does not exist is named below its nearest existing directory. The
// elements are separated by "/". Stores whose names are unique do not have it.
type Canonicalizer interface {
	Canonical(ctx context.Context, name string) (string, error)
}

// URI returns the URI of an object or a directory of s. given is the name that
// the user typed; it is the result if s is not a Namer, because names of object
// stores are URIs.
func URI(ctx context.Context, s storage.Storage, name, given string) (string, error) {
	if n, ok := s.(storage.Namer); ok {
		return n.URI(ctx, name)
	}
	return given, nil
}

// Directory is a directory with its identity, so that its replacement by another
// is noticed. The zero Version matches any directory of that name.
type Directory struct {
	Name    string
	Version storage.Version
}

// Confiner is an optional ability: describing an object only if it is in a
// directory. A symbolic link that leads out of the directory is an error, even
// one that is created concurrently. Because an Info has the Version of the
// object, later reads with that pin read no other object. Stores without links do
// not have it.
type Confiner interface {
	// Directory returns the identity of a directory. For a link to a directory it
	// returns ErrNotExist.
	Directory(ctx context.Context, name string) (Directory, error)
	// StatBelow is Stat of a name relative to a directory. It returns ErrChanged if
	// the directory was replaced, or if a link leads out of it.
	StatBelow(ctx context.Context, dir Directory, name string) (storage.Info, error)
}

// BelowDeleter is an optional ability: deleting a file only from the directory that was
// described, and only the version that was. Whatever links were put in its way, nothing
// else is deleted: it is ErrChanged if the directory or the file is another one now, and
// for a symbolic link. A file that is not there is ErrNotExist.
type BelowDeleter interface {
	DeleteBelow(ctx context.Context, dir Directory, name string, pin storage.Version) error
}

// Leftover is what an interrupted run left: a file, or a directory with its
// content.
type Leftover struct {
	Name    string
	Upload  string // of an unfinished upload of an object store: its id; Name is the object's
	Files   int
	Bytes   int64
	ModTime time.Time // the newest in it
	InUse   bool      // by a running process, as far as the system can tell
	// Foreign is why it is not a leftover of spt, although it has such a name; "" if
	// it is one.
	Foreign string
	// Displaced is the original name of the snapshot that this holds, if that name
	// does not exist now; see tempname.Aside.
	Displaced string
}

// ObjectLeftover describes an object of a temporary name in a store without
// directories.
func ObjectLeftover(info storage.Info) Leftover {
	l := Leftover{Name: info.Name, Files: 1, Bytes: info.Size, ModTime: info.ModTime}
	if !tempname.IsOwn(info.Name) {
		l.Foreign = "spt creates no such name"
	}
	return l
}

// Cleaner is an optional ability: finding and removing what interrupted runs
// left. It follows no links. In object stores, these are unfinished uploads.
type Cleaner interface {
	// Leftover describes a leftover.
	Leftover(ctx context.Context, name string) (Leftover, error)
	// Leftovers yields the leftovers below a directory, down to depth directories; or
	// name itself, if it is one. A directory that cannot be read is yielded with its
	// error, and does not end the list.
	Leftovers(ctx context.Context, name string, depth int) iter.Seq2[Leftover, error]
	// RemoveLeftover removes a leftover that is still as described: not foreign, not
	// in use, and not written since (else ErrChanged).
	RemoveLeftover(ctx context.Context, l Leftover) error
}

// UploadLister is an optional ability of a Cleaner in whose store unfinished uploads
// have a list of their own: the leftovers that a list of objects does not show. name and
// depth are as in Leftovers.
type UploadLister interface {
	Uploads(ctx context.Context, name string, depth int) iter.Seq2[Leftover, error]
}

// Contents is an optional ability of a Writer: the bytes written so far,
// read-only, so that they can be decoded again before they become visible. Call
// release before the next call on the writer; data is invalid after it.
type Contents interface {
	Contents() (data []byte, release func() error, err error)
}
