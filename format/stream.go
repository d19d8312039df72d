package format

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Stream refers to bytes. The set of implementations is closed: [*Inline], [*File],
// [*Segment], [*EmptySegment], [*KeyGroupStream], [*Chunks], [*Concat] and, as a
// part of a Concat, [*Computed]. A nil Stream has no bytes; Flink writes it as tag
// 0.
//
// Streams are values: they hold no open files and do not depend on the location of
// the snapshot. A [Source] reads their bytes.
type Stream interface {
	// Size returns the number of bytes, or -1 if the snapshot does not record it.
	Size() int64
	// Key identifies the bytes: streams with equal keys hold the same bytes and are
	// copied once. It does not depend on the location of the snapshot.
	Key() StreamKey
	stream()
}

// StreamKind is the kind of reference to bytes.
type StreamKind uint8

// The kinds of stream.
const (
	KindInline   StreamKind = iota + 1 // bytes inside _metadata
	KindRelative                       // a file next to _metadata
	KindAbsolute                       // a file named by an absolute path or URI
	KindSegment                        // a range of a merged file
	KindEmpty                          // a placeholder without bytes
	KindChunks                         // chunks of an .spt file
	KindConcat                         // ranges of other streams, not written yet
	KindComputed                       // computed from other streams, not written yet
)

var streamKinds = [...]string{"", "inline", "relative", "absolute", "segment", "empty", "chunks", "concat", "computed"}

// String returns the name of the kind.
func (k StreamKind) String() string { return streamKinds[k] }

// StreamKey is a comparable identity of bytes.
type StreamKey struct {
	Kind  StreamKind
	Name  string // path, or hex digest
	Start int64  // in the file, for segments
	Size  int64
}

// String returns a stable text, for logs and work lists.
func (k StreamKey) String() string {
	return fmt.Sprintf("%s:%d+%d:%s", k.Kind, k.Start, k.Size, k.Name)
}

// Inline is bytes in the container itself. Name looks like a path in Flink's files
// but is only an identity: no file of that name is opened (spec flink-metadata
// 5.1).
type Inline struct {
	Name Text
	Data Bytes
}

// File is a whole file. Path is the original text: the name of a file next to
// _metadata if Relative is set, otherwise an absolute path or URI.
type File struct {
	Path     Text
	Relative bool
	Length   int64 // -1: unknown
}

// Scope is the owner of a merged file.
type Scope int32

// The scopes, as Flink numbers them.
const (
	ScopeExclusive Scope = 0
	ScopeShared    Scope = 1
)

// Segment is a byte range of a file that holds the state of several handles.
type Segment struct {
	Path          Text
	Start, Length int64
	Scope         Scope
	LogicalID     Text
}

// EmptySegment is a placeholder of file merging. It has no bytes.
type EmptySegment struct{}

// KeyGroupStream is a key-group handle that takes the position of a stream (spec
// flink-metadata 5.1, tag 3). Its bytes are the bytes of Data.
type KeyGroupStream struct {
	Range   KeyGroupRange
	Offsets Offsets
	Data    Stream
}

// Chunks is bytes stored in chunks of an .spt file. As is the stream from which the
// bytes were copied (an Inline without data, a File, a Segment), so that a Flink
// snapshot can be recreated; nil for state that Flink did not write.
type Chunks struct {
	As     Stream
	Length int64
	Digest string // of the chunk list; equal digests mean equal bytes
	Index  int    // in the stream table of the file
}

// Concat is a rope: bytes described as ranges of other streams. Transforms create
// it. Its size is known without reading. As, if not nil, is the preferred reference
// to the written result, such as the name of a file; the writer decides.
type Concat struct {
	As    Stream
	Parts []Part
}

// Part is the bytes [Off, Off+N) of a stream.
type Part struct {
	Of     Stream
	Off, N int64
}

// Literal returns a part that consists of p.
func Literal(p []byte) Part {
	return Part{Of: &Inline{Data: NewBytes(p)}, N: int64(len(p))}
}

func (*Inline) stream()         {}
func (*File) stream()           {}
func (*Segment) stream()        {}
func (*EmptySegment) stream()   {}
func (*KeyGroupStream) stream() {}
func (*Chunks) stream()         {}
func (*Concat) stream()         {}

// Size returns the number of inline bytes.
func (s *Inline) Size() int64 { return int64(s.Data.Len()) }

// Size returns the recorded length, or -1.
func (s *File) Size() int64 { return s.Length }

// Size returns the length of the range.
func (s *Segment) Size() int64 { return s.Length }

// Within reports whether a file of size bytes can hold the segment.
func (s *Segment) Within(size int64) bool {
	return s.Start >= 0 && s.Length >= 0 && s.Start <= size && s.Length <= size-s.Start
}

// Size returns 0.
func (s *EmptySegment) Size() int64 { return 0 }

// Size returns the size of Data.
func (s *KeyGroupStream) Size() int64 {
	if s.Data == nil {
		return 0
	}
	return s.Data.Size()
}

// Size returns the number of bytes.
func (s *Chunks) Size() int64 { return s.Length }

// Size returns the sum of the parts.
func (s *Concat) Size() int64 {
	var n int64
	for _, p := range s.Parts {
		n += p.N
	}
	return n
}

// Key returns the SHA-256 of the bytes, computed at each call. If a mapped file
// shrinks meanwhile, the key differs from all others.
func (s *Inline) Key() StreamKey {
	k := StreamKey{Kind: KindInline, Size: s.Size()}
	err := s.Data.View(func(p []byte) error {
		sum := sha256.Sum256(p)
		k.Name = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		k.Name = fmt.Sprintf("changed:%p", s)
	}
	return k
}

// Key returns the canonical path (see [CanonicalURI]).
func (s *File) Key() StreamKey {
	if s.Relative {
		return StreamKey{Kind: KindRelative, Name: s.Path.String()}
	}
	return StreamKey{Kind: KindAbsolute, Name: CanonicalURI(s.Path.String())}
}

// Key returns the canonical path and the range.
func (s *Segment) Key() StreamKey {
	return StreamKey{Kind: KindSegment, Name: CanonicalURI(s.Path.String()), Start: s.Start, Size: s.Length}
}

// Key returns the same key for all placeholders.
func (s *EmptySegment) Key() StreamKey { return StreamKey{Kind: KindEmpty} }

// Key returns the key of Data.
func (s *KeyGroupStream) Key() StreamKey {
	if s.Data == nil {
		return StreamKey{Kind: KindEmpty}
	}
	return s.Data.Key()
}

// Key returns the digest of the chunk list.
func (s *Chunks) Key() StreamKey {
	return StreamKey{Kind: KindChunks, Name: s.Digest, Size: s.Length}
}

// Key returns a digest of the keys and ranges of the parts.
func (s *Concat) Key() StreamKey {
	h := sha256.New()
	keys := map[Stream]string{} // most of a rope's thousands of parts are in few streams
	for _, p := range s.Parts {
		key, ok := keys[p.Of]
		if !ok {
			key = p.Of.Key().String()
			keys[p.Of] = key
		}
		fmt.Fprintf(h, "%s@%d+%d\n", key, p.Off, p.N)
	}
	return StreamKey{Kind: KindConcat, Name: hex.EncodeToString(h.Sum(nil)), Size: s.Size()}
}

// Kind returns the kind of s, for a key-group stream the kind of its Data, and 0
// for nil.
func Kind(s Stream) StreamKind {
	switch s := s.(type) {
	case *Inline:
		return KindInline
	case *File:
		if s.Relative {
			return KindRelative
		}
		return KindAbsolute
	case *Segment:
		return KindSegment
	case *EmptySegment:
		return KindEmpty
	case *KeyGroupStream:
		return Kind(s.Data)
	case *Chunks:
		return KindChunks
	case *Concat:
		return KindConcat
	case *Computed:
		return KindComputed
	}
	return 0
}

// SizeOf returns the size of s, or 0 if s is nil or its size is unknown.
func SizeOf(s Stream) int64 {
	if s == nil {
		return 0
	}
	return max(s.Size(), 0)
}

// Reference returns the path by which s refers to a file outside the container, and
// whether the path is relative. ok is false for streams that do not refer to a
// file.
func Reference(s Stream) (path Text, relative, ok bool) {
	switch s := s.(type) {
	case *File:
		return s.Path, s.Relative, true
	case *Segment:
		return s.Path, false, true
	case *KeyGroupStream:
		return Reference(s.Data)
	}
	return Text{}, false, false
}

// CanonicalURI returns one spelling for all spellings of a location, for comparing:
// s3a: and s3p: become s3:, file:///x becomes file:/x, and the schemes and hosts of Azure
// become abfss: and the one with .dfs. It is never written to a file.
func CanonicalURI(uri string) string {
	for _, s3 := range [...]string{"s3a:", "s3p:"} {
		if strings.HasPrefix(uri, s3) {
			return "s3:" + uri[len(s3):]
		}
	}
	if strings.HasPrefix(uri, "file:///") {
		return "file:/" + uri[len("file:///"):]
	}
	for _, azure := range [...]string{"abfs://", "abfss://", "wasb://", "wasbs://"} {
		if rest, ok := strings.CutPrefix(uri, azure); ok {
			return "abfss://" + azureAuthority(rest)
		}
	}
	return uri
}

// azureAuthority replaces .blob. by .dfs. in the host of Azure, in what follows "://".
func azureAuthority(rest string) string {
	authority, path := rest, ""
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		authority, path = rest[:slash], rest[slash:]
	}
	container, host, ok := strings.Cut(authority, "@")
	if !ok {
		return rest
	}
	return container + "@" + strings.Replace(strings.ToLower(host), ".blob.", ".dfs.", 1) + path
}

// Source reads the bytes of streams. It is safe for concurrent use.
type Source interface {
	// ReadAt reads len(p) bytes at off of s. A short read is an error: it matches
	// ErrTruncated if the stream is shorter than the snapshot records, ErrMissing
	// if the file does not exist, and ErrChanged if it changed. It never returns
	// io.EOF.
	ReadAt(ctx context.Context, s Stream, p []byte, off int64) (int, error)
}

// Sizer is optionally implemented by a Source. It returns the actual size of a
// stream, which differs from the recorded one if the snapshot records none (-1),
// and for changelog files: Flink does not count their first byte.
type Sizer interface {
	SizeOf(ctx context.Context, s Stream) (int64, error)
}

// StreamSize returns the number of bytes of a stream, as recorded or from its
// source. The error matches ErrUnsupported if neither has it.
func StreamSize(ctx context.Context, src Source, s Stream) (int64, error) {
	if s == nil {
		return 0, Errorf(ErrCorrupt, "a handle without a stream")
	}
	if n := s.Size(); n >= 0 {
		return n, nil
	}
	z, ok := src.(Sizer)
	if !ok {
		return 0, Errorf(ErrUnsupported, "the length of the stream is not known")
	}
	n, err := z.SizeOf(ctx, s)
	if err == nil && n < 0 { // the recorded length of a segment is its length
		return 0, Errorf(ErrCorrupt, "a stream of %d bytes", n)
	}
	return n, err
}
