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
	// the object may exist, but never in part.
	Commit(ctx context.Context) (Info, error)
	// Abort removes the object and whatever Create made for it. After a successful
	// Commit, or when called again, it does nothing, so it can be deferred. It works
	// after the context has ended.
	Abort(ctx context.Context) error
}

// Copier is an optional ability of a destination store: copying a range into one
// of its writers without moving the bytes through this process. Unlike in a read,
// a range past the end is an error. Use CopyRange, which falls back to reading
// and writing.
type Copier interface {
	CopyRange(ctx context.Context, w Writer, src Storage, name string, off, n int64, pin Version) error
}

// Mapper is an optional ability: mapping an object into memory.
type Mapper interface {
	Map(ctx context.Context, name string, pin Version) (*Mapped, error)
}

// Resolver finds the store of a path or URI and the object's name in it:
// references in a snapshot may lead to another store.
type Resolver interface {
	Resolve(ctx context.Context, uri string) (Storage, string, error)
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
	Link(ctx context.Context, dst string, src Storage, name string, pin Version, ifAbsent bool) (Info, error)
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

// Namer is an optional ability: the URI of an object or a directory, by which
// programs on any machine with access to the store refer to it. All names that
// lead to an object have the same URI. Use URI, which falls back.
type Namer interface {
	URI(ctx context.Context, name string) (string, error)
}

// URI returns the URI of an object or a directory of s. given is the name that
// the user gave; it is the result if s is not a Namer, because names of object
// stores are URIs.
func URI(ctx context.Context, s Storage, name, given string) (string, error) {
	if n, ok := s.(Namer); ok {
		return n.URI(ctx, name)
	}
	return given, nil
}

// Folder is a directory with its identity, so that its replacement by another is
// noticed. The zero Version matches any directory of that name.
type Folder struct {
	Name    string
	Version Version
}

// Confiner is an optional ability: describing an object only if it is in a
// directory. A symbolic link that leads out of the directory is an error, even
// one that is created concurrently. Because an Info has the Version of the
// object, later reads with that pin read no other object. Stores without links do
// not have it.
type Confiner interface {
	// Folder returns the identity of a directory. For a link to a directory it
	// returns ErrNotExist.
	Folder(ctx context.Context, name string) (Folder, error)
	// StatBelow is Stat of a name relative to a directory. It returns ErrChanged if
	// the directory was replaced, or if a link leads out of it.
	StatBelow(ctx context.Context, dir Folder, name string) (Info, error)
}

// Leftover is what an interrupted run left: a file, or a directory with its
// content.
type Leftover struct {
	Name    string
	Files   int
	Bytes   int64
	ModTime time.Time // the newest in it
	InUse   bool      // by a running process, as far as the system can tell
	// Foreign is why it is not a leftover of spt, although it has such a name; "" if
	// it is one.
	Foreign string
	// Displaced is the original name of the snapshot that this holds, if that name
	// does not exist now; see AsideName.
	Displaced string
}

// Cleaner is an optional ability: finding and removing what interrupted runs
// left. It follows no links. Object stores do not have it: they leave no
// temporary objects.
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

// SpaceReporter is an optional ability: the number of bytes that can still be
// written where name would be stored.
type SpaceReporter interface {
	FreeSpace(ctx context.Context, name string) (int64, error)
}

// Contents is an optional ability of a Writer: the bytes written so far,
// read-only, so that they can be decoded again before they become visible. Call
// release before the next call on the writer; data is invalid after it.
type Contents interface {
	Contents() (data []byte, release func() error, err error)
}

// TempPrefix begins the last element of every temporary name. Such a name without
// a running writer is a leftover and safe to delete.
const TempPrefix = ".spt-tmp-"

// asidePrefix begins the last element of the name to which a snapshot is moved
// while another replaces it, if the two cannot be exchanged atomically.
const asidePrefix = ".spt-old-"

// TempName returns a fresh temporary name next to name.
func TempName(name string) string { return freshName(TempPrefix, name) }

// AsideName returns a fresh name next to name, to which its content is moved
// while it is replaced.
func AsideName(name string) string { return freshName(asidePrefix, name) }

const (
	randomBytes = 6
	maxBase     = 200 // file systems allow 255 bytes
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

// nameAfter returns the part of a name made by freshName that follows the prefix
// and the random part.
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

// IsAside reports whether AsideName made name, and returns the last element of
// the original name. A very long base is cut.
func IsAside(name string) (base string, ok bool) { return nameAfter(asidePrefix, name) }

// AsideOf reports whether AsideName(name) can return aside.
func AsideOf(aside, name string) bool {
	base, ok := IsAside(aside)
	name = strings.TrimSuffix(name, "/")
	name = name[lastElement(name):]
	return ok && (base == name || len(name) > maxBase && strings.HasPrefix(name, base))
}

// IsOwn reports whether name has exactly the syntax of TempName or AsideName; it
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

// copyBuffer is the size of the buffer for bytes copied through this process.
const copyBuffer = 1 << 20

// CopyRange appends a range of an object to w, a writer of dst, in the cheapest
// way that both stores support. off and n are as in ReadRange, but a range past
// the end is an error.
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
