package format_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func TestCanonicalURI(t *testing.T) {
	for in, want := range map[string]string{
		"s3://b/x":      "s3://b/x",
		"s3a://b/x":     "s3://b/x",
		"s3p://b/x":     "s3://b/x",
		"s3n://b/x":     "s3n://b/x",
		"file:/x/y":     "file:/x/y",
		"file:///x/y":   "file:/x/y",
		"file://host/x": "file://host/x",
		"/x/s3a://y":    "/x/s3a://y",
		"hdfs://n:8/a":  "hdfs://n:8/a",
		"S3A://b/x":     "S3A://b/x",
		"":              "",
		"s3a":           "s3a",
		"abfs://c@Prod.dfs.core.windows.net/A.blob.": "abfss://c@prod.dfs.core.windows.net/A.blob.",
		"wasbs://c@prod.blob.core.windows.net/A":     "abfss://c@prod.dfs.core.windows.net/A",
		"wasb://c@prod.blob.core.windows.net":        "abfss://c@prod.dfs.core.windows.net",
		"abfss://c":                                  "abfss://c",
		"wasbs://":                                   "abfss://",
	} {
		if got := format.CanonicalURI(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func inline(name, data string) *format.Inline {
	return &format.Inline{Name: format.NewText(name), Data: format.NewBytes([]byte(data))}
}

func TestStreamKeys(t *testing.T) {
	abs := func(path string, n int64) *format.File { return &format.File{Path: format.NewText(path), Length: n} }
	rel := func(path string) *format.File { return &format.File{Path: format.NewText(path), Relative: true} }
	seg := func(path string, start, n int64) *format.Segment {
		return &format.Segment{Path: format.NewText(path), Start: start, Length: n}
	}
	same := [][2]format.Stream{
		{inline("a", "data"), inline("b", "data")}, // the name is no part of it
		{abs("s3://b/x", 5), abs("s3a://b/x", -1)}, // nor what the writer knew of the length
		{abs("file:/x", 5), abs("file:///x", 5)},
		{seg("s3://b/x", 1, 2), seg("s3p://b/x", 1, 2)},
		{&format.EmptySegment{}, &format.EmptySegment{}},
		{abs("x", 1), &format.KeyGroupStream{Data: abs("x", 1)}},
		{&format.EmptySegment{}, &format.KeyGroupStream{}},
		{&format.Chunks{Digest: "d", Length: 5, Index: 1}, &format.Chunks{Digest: "d", Length: 5, Index: 9}},
		{&format.Concat{Parts: []format.Part{format.Literal([]byte("ab"))}}, &format.Concat{Parts: []format.Part{format.Literal([]byte("ab"))}}},
	}
	for i, p := range same {
		if p[0].Key() != p[1].Key() || p[0].Key().String() != p[1].Key().String() {
			t.Errorf("%d: %v and %v", i, p[0].Key(), p[1].Key())
		}
	}
	different := []format.Stream{
		inline("a", "data"), inline("a", "date"), inline("a", ""),
		abs("x", 5), rel("x"), abs("y", 5), seg("x", 0, 5), seg("x", 1, 5), seg("x", 0, 4),
		&format.EmptySegment{}, &format.Chunks{Digest: "x", Length: 5}, &format.Chunks{Digest: "y", Length: 5},
		&format.Concat{Parts: []format.Part{{Of: abs("x", 5), Off: 0, N: 5}}},
		&format.Concat{Parts: []format.Part{{Of: abs("x", 5), Off: 1, N: 4}}},
		&format.Concat{Parts: []format.Part{{Of: abs("x", 5), Off: 0, N: 2}, {Of: abs("x", 5), Off: 2, N: 3}}},
	}
	seen := map[format.StreamKey]int{}
	text := map[string]int{}
	for i, s := range different {
		k := s.Key()
		if j, ok := seen[k]; ok {
			t.Errorf("%d and %d have one key: %v", i, j, k)
		}
		if j, ok := text[k.String()]; ok {
			t.Errorf("%d and %d have one text: %v", i, j, k)
		}
		seen[k], text[k.String()] = i, i
		if k.Kind != format.Kind(s) {
			t.Errorf("%d: kind %v and %v", i, k.Kind, format.Kind(s))
		}
	}
	sum := sha256.Sum256([]byte("data"))
	if got, want := inline("a", "data").Key().String(), "inline:0+4:"+hex.EncodeToString(sum[:]); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestStreamSizes(t *testing.T) {
	x := &format.File{Path: format.NewText("p"), Length: 9}
	for _, c := range []struct {
		s        format.Stream
		size     int64
		kind     string
		ref      string
		relative bool
	}{
		{nil, 0, "", "", false},
		{inline("file:/never/opened", "12345"), 5, "inline", "", false},
		{x, 9, "absolute", "p", false},
		{&format.File{Path: format.NewText("p"), Length: -1}, 0, "absolute", "p", false},
		{&format.File{Path: format.NewText("r"), Relative: true, Length: 3}, 3, "relative", "r", true},
		{&format.Segment{Path: format.NewText("m"), Start: 100, Length: 7}, 7, "segment", "m", false},
		{&format.EmptySegment{}, 0, "empty", "", false},
		{&format.KeyGroupStream{Data: x}, 9, "absolute", "p", false},
		{&format.KeyGroupStream{}, 0, "", "", false},
		{&format.Chunks{As: x, Length: 4}, 4, "chunks", "", false},
		{&format.Concat{As: x, Parts: []format.Part{{Of: x, Off: 1, N: 2}, format.Literal([]byte("abc"))}}, 5, "concat", "", false},
	} {
		path, relative, ok := format.Reference(c.s)
		if format.SizeOf(c.s) != c.size || format.Kind(c.s).String() != c.kind || path.String() != c.ref || relative != c.relative || ok != (c.ref != "") {
			t.Errorf("%+v: size %d, %s, %q %v %v", c.s, format.SizeOf(c.s), format.Kind(c.s), path, relative, ok)
		}
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"list": format.ModeList.String(), "union": format.ModeUnion.String(), "broadcast": format.ModeBroadcast.String(), "mode 7": format.Mode(7).String(),
		"full checkpoint": format.TypeFullCheckpoint.String(), "terminate savepoint": format.TypeTerminateSavepoint.String(), "native": format.FormatNative.String(),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for k, is := range map[format.SnapshotType]bool{format.TypeUnknown: false, format.TypeCheckpoint: false, format.TypeFullCheckpoint: false,
		format.TypeSavepoint: true, format.TypeSuspendSavepoint: true, format.TypeTerminateSavepoint: true} {
		if k.IsSavepoint() != is {
			t.Errorf("%v", k)
		}
	}
	l := format.Limits{Depth: 3}.WithDefaults(1000)
	if l != (format.Limits{Operators: 1_000_000, Subtasks: 32_768, Nodes: 16_000_000, Depth: 3, Manifest: 1 << 30, Chunk: 8<<20 + 16_000,
		Memory: 64<<20 + 16_000, Offsets: 1<<20 + 512_000, ChunkRefs: 1<<22 + 16_000, Value: 64<<20 + 16_000}) {
		t.Errorf("%+v", l)
	}
}

// sized is a source that returns what a stream claims.
type sized struct{ format.Source }

func (sized) SizeOf(_ context.Context, s format.Stream) (int64, error) {
	if _, ok := s.(*format.File); ok {
		return 12, nil
	}
	return s.Size(), nil
}

// A length below 0 is never a size: only that of a file stands for one that is
// not known.
func TestStreamSizeBelowZero(t *testing.T) {
	seg := &format.Segment{Path: format.NewText("m"), Length: -1}
	for _, s := range []format.Stream{seg, &format.KeyGroupStream{Data: seg}, &format.Segment{Path: format.NewText("m"), Length: math.MinInt64}} {
		if n, err := format.StreamSize(t.Context(), sized{}, s); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%T: %d, %v", s, n, err)
		}
	}
	if n, err := format.StreamSize(t.Context(), sized{}, &format.File{Path: format.NewText("p"), Length: -1}); n != 12 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
