package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"os"
	"strings"
	"time"
	"unicode/utf8"
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

// Mapper is an optional ability: an object as memory.
type Mapper interface {
	Map(ctx context.Context, name string, pin Version) (*Mapped, error)
}

// Resolver is an optional ability: a reference inside a snapshot may point into
// another store.
type Resolver interface {
	Resolve(ctx context.Context, uri string) (Storage, string, error)
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
	Link(ctx context.Context, dst string, src Storage, name string, pin Version, ifAbsent bool) (Info, error)
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

// Namer is an optional ability: the URI of an object or a directory, by which programs
// on any machine that has the store refer to it. It is the same for all names that
// lead to the object. Use URI, which falls back.
type Namer interface {
	URI(ctx context.Context, name string) (string, error)
}

// URI returns the URI of an object or a directory of s. given is how the user named
// it, which is the result where s does not have the ability: names of object stores
// are URIs.
func URI(ctx context.Context, s Storage, name, given string) (string, error) {
	if n, ok := s.(Namer); ok {
		return n.URI(ctx, name)
	}
	return given, nil
}

// Folder is a directory whose identity is known, so that another one under its name
// is noticed. The zero Version matches any directory of that name.
type Folder struct {
	Name    string
	Version Version
}

// Confiner is an optional ability: describing an object only if it is in a
// directory. A symbolic link that leads out of the directory is an error, also one that
// is put in the way of the object meanwhile. Because an Info has the Version of
// the object, later reads with that pin read no other one, whatever became of its
// name. Stores without links do not have it.
type Confiner interface {
	// Folder returns the identity of a directory. A link to a directory is ErrNotExist.
	Folder(ctx context.Context, name string) (Folder, error)
	// StatBelow is Stat of a name relative to a directory. It is ErrChanged if the
	// directory is another one now, or if a link leads out of it.
	StatBelow(ctx context.Context, dir Folder, name string) (Info, error)
}

// BelowDeleter is an optional ability: deleting a file only from the directory that was
// described, and only the version that was. Whatever links were put in its way, nothing
// else is deleted: it is ErrChanged if the directory or the file is another one now, and
// for a symbolic link. A file that is not there is ErrNotExist.
type BelowDeleter interface {
	DeleteBelow(ctx context.Context, dir Folder, name string, pin Version) error
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
	// nothing under that name: see AsideName.
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

// SpaceReporter is an optional ability: how many bytes may still be written where
// name would be stored.
type SpaceReporter interface {
	FreeSpace(ctx context.Context, name string) (int64, error)
}

// Contents is an optional ability of a Writer: what was written so far, read-only,
// so that it can be decoded again before it becomes visible. Call release before
// the next call on the writer; data is invalid after it.
type Contents interface {
	Contents() (data []byte, release func() error, err error)
}

// TempPrefix begins the last element of every temporary name. A name like that
// without a running writer is a leftover and safe to delete.
const TempPrefix = ".spt-tmp-"

// asidePrefix begins the last element of the name under which a snapshot waits
// while another takes its name, where the two cannot be exchanged in one step.
const asidePrefix = ".spt-old-"

// TempName returns a fresh temporary name next to name.
func TempName(name string) string { return freshName(TempPrefix, name) }

// AsideName returns a fresh name next to name, for what has that name until
// something else takes it.
func AsideName(name string) string { return freshName(asidePrefix, name) }

const (
	randomBytes = 6
	maxBase     = 200 // file systems stop at 255 bytes
)

func freshName(prefix, name string) string {
	i := lastElement(name)
	base := name[i:]
	for len(base) > maxBase {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	var b [randomBytes]byte
	rand.Read(b[:]) // never fails
	return name[:i] + prefix + hex.EncodeToString(b[:]) + "-" + base
}

// nameAfter returns what follows the prefix and the random part of a name that
// freshName made.
func nameAfter(prefix, name string) (base string, ok bool) {
	name = strings.TrimSuffix(name, "/")
	rest, ok := strings.CutPrefix(name[lastElement(name):], prefix)
	if !ok || len(rest) < 2*randomBytes+2 || rest[2*randomBytes] != '-' {
		return "", false
	}
	if _, err := hex.DecodeString(rest[:2*randomBytes]); err != nil {
		return "", false
	}
	return rest[2*randomBytes+1:], true
}

// IsAside reports whether name is one that AsideName returned, and base the last
// element of the name for which it did. A very long base is cut.
func IsAside(name string) (base string, ok bool) { return nameAfter(asidePrefix, name) }

// AsideOf reports whether AsideName(name) can have returned aside.
func AsideOf(aside, name string) bool {
	base, ok := IsAside(aside)
	name = strings.TrimSuffix(name, "/")
	name = name[lastElement(name):]
	return ok && (base == name || len(name) > maxBase && strings.HasPrefix(name, base))
}

// IsOwn reports whether name is exactly as TempName or AsideName make one, which
// is stricter than IsTemp.
func IsOwn(name string) bool {
	_, temp := nameAfter(TempPrefix, name)
	_, aside := nameAfter(asidePrefix, name)
	return temp || aside
}

// IsTemp reports whether name is a temporary name. A directory may end in "/".
func IsTemp(name string) bool {
	name = strings.TrimSuffix(name, "/")
	return strings.HasPrefix(name[lastElement(name):], TempPrefix)
}

func lastElement(name string) int {
	return 1 + strings.LastIndexAny(name, "/"+string(os.PathSeparator))
}

// copyBuffer is the piece in which bytes are copied through this process.
const copyBuffer = 1 << 20

// CopyRange appends a range of an object to w, a writer of dst, in the cheapest
// way both stores allow. off and n are those of ReadRange, but a range past the
// end is an error: nothing is silently left out.
func CopyRange(ctx context.Context, dst Storage, w Writer, src Storage, name string, off, n int64, pin Version) error {
	if c, ok := dst.(Copier); ok {
		if err := c.CopyRange(ctx, w, src, name, off, n, pin); !errors.Is(err, ErrUnsupported) {
			return err
		}
	}
	body, info, err := NewReader(src, name, pin).Open(ctx, off, n)
	if err != nil {
		return err
	}
	defer body.Close()
	start, end, err := Span("copy", info, off, n)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, min(copyBuffer, 1+end-start)))
	return err
}
