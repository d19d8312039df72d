package format

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Stream names bytes that live somewhere. The set is closed: [*Inline],
// [*File], [*Segment], [*EmptySegment], [*KeyGroupStream], [*Chunks], [*Concat]
// and, as a part of that, [*Computed]. A nil Stream is "no bytes", which Flink writes as tag 0.
//
// Streams are values: they are not opened, and say nothing of where the
// snapshot stands. A [Source] turns them into bytes.
type Stream interface {
	// Size is the number of bytes, or -1 where the snapshot does not say.
	Size() int64
	// Key identifies the bytes: streams with equal keys hold the same bytes
	// and are copied once. It does not depend on where the snapshot stands.
	Key() StreamKey
	stream()
}

// StreamKind says how a stream refers to its bytes.
type StreamKind uint8

// The kinds of stream.
const (
	KindInline   StreamKind = iota + 1 // bytes inside _metadata
	KindRelative                       // a file beside _metadata
	KindAbsolute                       // a file named by an absolute path or URI
	KindSegment                        // a range of a merged file
	KindEmpty                          // a placeholder without bytes
	KindChunks                         // chunks of an .spt file
	KindConcat                         // put together from others, not written yet
	KindComputed                       // made from others, not written yet
)

var streamKinds = [...]string{"", "inline", "relative", "absolute", "segment", "empty", "chunks", "concat", "computed"}

// String is the kind's name.
func (k StreamKind) String() string { return streamKinds[k] }

// StreamKey is a comparable identity of bytes, with a stable text form.
type StreamKey struct {
	Kind  StreamKind
	Name  string // path, or hex digest
	Start int64  // in the file, for segments
	Size  int64
}

// String is a stable encoding, for logs and work lists.
func (k StreamKey) String() string {
	return fmt.Sprintf("%s:%d+%d:%s", k.Kind, k.Start, k.Size, k.Name)
}

// Inline is bytes that stand in the container itself. Name looks like a path
// in Flink's files and is only an identity: nothing of that name is ever
// opened (spec flink-metadata 5.1).
type Inline struct {
	Name Text
	Data Bytes
}

// File is a whole file. Path is kept as it was written: one bare name beside
// _metadata where Relative, else an absolute path or URI.
type File struct {
	Path     Text
	Relative bool
	Length   int64 // -1: not known to the writer
}

// Scope tells who owns a merged file.
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

// EmptySegment is the placeholder of file merging: no bytes.
type EmptySegment struct{}

// KeyGroupStream is a key-group handle that stands where a stream is expected
// (spec flink-metadata 5.1, tag 3). Its bytes are those of Data.
type KeyGroupStream struct {
	Range   KeyGroupRange
	Offsets Offsets
	Data    Stream
}

// Chunks is bytes that lie in the chunks of an .spt file. As is the stream the
// bytes came from (an Inline without data, a File, a Segment), so that a Flink
// snapshot can be made again; nil for state that never was Flink's.
type Chunks struct {
	As     Stream
	Length int64
	Digest string // of the stream's chunk list; equal digests, same bytes
	Index  int    // in the stream table of the file
}

// Concat is bytes described as ranges of other streams: what a transform
// makes. Its size is known without reading anything. As is a wish for how the
// result is to be referred to (a name to keep); nil leaves it to the writer.
type Concat struct {
	As    Stream
	Parts []Part
}

// Part is the bytes [Off, Off+N) of a stream.
type Part struct {
	Of     Stream
	Off, N int64
}

// Literal is a part with bytes of its own.
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

// Size is the number of inline bytes.
func (s *Inline) Size() int64 { return int64(s.Data.Len()) }

// Size is the length the snapshot claims, or -1.
func (s *File) Size() int64 { return s.Length }

// Size is the length of the range.
func (s *Segment) Size() int64 { return s.Length }

// Within reports whether a file of size bytes can hold the segment.
func (s *Segment) Within(size int64) bool {
	return s.Start >= 0 && s.Length >= 0 && s.Start <= size && s.Length <= size-s.Start
}

// Size is 0.
func (s *EmptySegment) Size() int64 { return 0 }

// Size is that of the stream inside.
func (s *KeyGroupStream) Size() int64 {
	if s.Data == nil {
		return 0
	}
	return s.Data.Size()
}

// Size is the number of bytes in the chunks.
func (s *Chunks) Size() int64 { return s.Length }

// Size is the sum of the parts.
func (s *Concat) Size() int64 {
	var n int64
	for _, p := range s.Parts {
		n += p.N
	}
	return n
}

// Key is the SHA-256 of the bytes, computed at each call. A mapped file that
// shrinks meanwhile gives a key that equals no other.
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

// Key is the path, with the spellings of one object store made equal.
func (s *File) Key() StreamKey {
	if s.Relative {
		return StreamKey{Kind: KindRelative, Name: s.Path.String()}
	}
	return StreamKey{Kind: KindAbsolute, Name: CanonicalURI(s.Path.String())}
}

// Key is path and range.
func (s *Segment) Key() StreamKey {
	return StreamKey{Kind: KindSegment, Name: CanonicalURI(s.Path.String()), Start: s.Start, Size: s.Length}
}

// Key is the same for all placeholders.
func (s *EmptySegment) Key() StreamKey { return StreamKey{Kind: KindEmpty} }

// Key is that of the stream inside.
func (s *KeyGroupStream) Key() StreamKey {
	if s.Data == nil {
		return StreamKey{Kind: KindEmpty}
	}
	return s.Data.Key()
}

// Key is the digest of the chunk list.
func (s *Chunks) Key() StreamKey {
	return StreamKey{Kind: KindChunks, Name: s.Digest, Size: s.Length}
}

// Key is a digest of the parts' keys and ranges.
func (s *Concat) Key() StreamKey {
	h := sha256.New()
	keys := map[Stream]string{} // of a rope's thousands of parts, most are of few streams
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

// Kind tells how s refers to its bytes, looking through key-group streams;
// 0 for nil.
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

// SizeOf is the size of s with 0 for nil and for what is not known.
func SizeOf(s Stream) int64 {
	if s == nil {
		return 0
	}
	return max(s.Size(), 0)
}

// Reference is the path by which s names a file outside the container, and
// whether it is relative; ok is false for streams that name none.
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

// CanonicalURI makes the spellings of one place equal, for comparing: s3a: and
// s3p: become s3:, and file:///x becomes file:/x. It is never written anywhere.
func CanonicalURI(uri string) string {
	for _, s3 := range [...]string{"s3a:", "s3p:"} {
		if strings.HasPrefix(uri, s3) {
			return "s3:" + uri[len(s3):]
		}
	}
	if strings.HasPrefix(uri, "file:///") {
		return "file:/" + uri[len("file:///"):]
	}
	return uri
}

// Source reads the bytes of streams. It is safe for concurrent use.
type Source interface {
	// ReadAt reads from s at off until p is full. A short read is an error: it
	// matches ErrTruncated where the stream is shorter than the snapshot says,
	// ErrMissing where the file is not there, ErrChanged where it changed.
	// io.EOF is never returned.
	ReadAt(ctx context.Context, s Stream, p []byte, off int64) (int, error)
}

// Sizer is an optional ability of a Source: how many bytes a stream really has.
// A snapshot may not say it (-1), and Flink says one less of the files of its
// changelog, whose first byte its handles do not count.
type Sizer interface {
	SizeOf(ctx context.Context, s Stream) (int64, error)
}

// StreamSize is how many bytes a stream has, by itself or by its source. It is an
// ErrUnsupported where neither can tell.
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
	if err == nil && n < 0 { // a segment has no other length than the one that it claims
		return 0, Errorf(ErrCorrupt, "a stream of %d bytes", n)
	}
	return n, err
}
