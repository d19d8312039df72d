package spt_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
)

var update = flag.Bool("update", false, "rewrite the example in docs/format.md")

// example is the savepoint of the example in docs/format.md: a union state
// whose list stands in both subtasks, and a file that is only referred to.
func example() *format.Savepoint {
	list := []byte("\x00\x01head" + "apple" + "pear" + "fig")
	subtask := func(i int32) *format.Subtask {
		return &format.Subtask{Index: i, Managed: &format.OperatorHandle{
			Codec:  format.CodecFlink,
			States: []format.NamedState{{Name: format.NewText("fruit"), Mode: format.ModeUnion, Offsets: format.OffsetSlice{6, 11, 15}}},
			Data:   inline(fmt.Sprintf("file:/sp/%d", i), list),
		}}
	}
	op := &format.Operator{
		UID: format.NewText("basket"), ID: format.OperatorIDOf("basket"), Parallelism: 2, MaxParallelism: 128,
		Subtasks: []*format.Subtask{subtask(0), subtask(1)},
	}
	op.Subtasks[1].ManagedKeyed = &format.KeyGroups{
		Codec: format.CodecFlink, Range: format.KeyGroupRange{First: 64, Count: 2}, Offsets: format.OffsetSlice{40, 90},
		Data: &format.File{Path: format.NewText("s3://bucket/keyed"), Length: 120},
	}
	return &format.Savepoint{
		ID: 7, Kind: format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatCanonical},
		Operators: []*format.Operator{op}, Wire: "\x04",
	}
}

// TestExampleInDocs makes the file of docs/format.md again and compares each
// byte, with what the document says of it.
func TestExampleInDocs(t *testing.T) {
	p := pack(t, example(), source{}, spt.Options{Compression: spt.None})
	sameModel(t, mustOpen(t, p), example(), source{})

	path := filepath.Join("..", "..", "docs", "format.md")
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"file": dumpFile(p), "manifest": dumpManifest(t, p)} {
		begin, end := fmt.Sprintf("<!-- example %s -->\n```\n", name), "```\n"
		head, rest, ok := strings.Cut(string(doc), begin)
		got, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("no example of the %s in %s", name, path)
		}
		if *update {
			doc = []byte(head + begin + want + end + tail)
		} else if got != want {
			t.Errorf("the %s in %s is not what is written:\n%s", name, path, want)
		}
	}
	if *update {
		if err := os.WriteFile(path, doc, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// dump writes bytes in rows of at most n, with a note behind the first.
func dump(b *strings.Builder, at int, p []byte, n int, note string) {
	for first := true; first || len(p) > 0; first = false {
		k := min(n, len(p))
		line := fmt.Sprintf("%04x  %-*s  %s", at, 3*n-1, fmt.Sprintf("% x", p[:k]), note)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		at, p, note = at+k, p[k:], ""
	}
}

func dumpFile(p []byte) string {
	var b strings.Builder
	at := 0
	field := func(n int, note string) {
		dump(&b, at, p[at:at+n], 16, note)
		at += n
	}
	manifest := int(binary.LittleEndian.Uint64(p[len(p)-40:]))
	field(8, "header: magic")
	field(2, "major 1")
	field(2, "minor 0")
	field(4, "no flags")
	field(6, "chunk 0: what precedes the first state")
	field(manifest-at, "chunk 1: the state (apple, pear, fig)")
	field(len(p)-40-at, "manifest, one zstd frame")
	field(8, fmt.Sprintf("trailer: the manifest starts at %d", manifest))
	field(4, "its stored length")
	field(4, "its length")
	field(16, "SHA-256 of the stored manifest, 16 bytes")
	field(8, "end magic")
	return b.String()
}

// dumpManifest shows each msgpack value of a manifest. It reads msgpack by
// itself, and only what this example has.
func dumpManifest(t *testing.T, p []byte) string {
	t.Helper()
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := dec.DecodeAll(p[binary.LittleEndian.Uint64(p[len(p)-40:]):len(p)-40], nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	at := 0
	var value func(depth int, key string)
	value = func(depth int, key string) {
		start, c := at, raw[at]
		note := strings.Repeat("  ", depth) + key
		emit := func(n int, format string, args ...any) {
			at += n
			dump(&b, start, raw[start:at], 12, note+fmt.Sprintf(format, args...))
		}
		switch {
		case c < 0x80:
			emit(1, "%d", c)
		case c < 0x90:
			emit(1, "map of %d", c&15)
			for range c & 15 {
				n := int(raw[at] & 31)
				if raw[at]&0xe0 != 0xa0 {
					t.Fatalf("key of code %x", raw[at])
				}
				k := string(raw[at+1 : at+1+n])
				dump(&b, at, raw[at:at+1+n], 12, strings.Repeat("  ", depth+1)+k)
				at += 1 + n
				value(depth+2, "")
			}
		case c < 0xa0:
			emit(1, "array of %d", c&15)
			for range c & 15 {
				value(depth+1, "")
			}
		case c < 0xc0:
			n := int(c & 31)
			emit(1+n, "%q", raw[at+1:at+1+n])
		case c == 0xc2 || c == 0xc3:
			emit(1, "%v", c == 0xc3)
		case c == 0xc4:
			n := int(raw[at+1])
			emit(2+n, "%d bytes", n)
		case c == 0xcc:
			emit(2, "%d", raw[at+1])
		default:
			t.Fatalf("code %x at %d", c, at)
		}
	}
	value(0, "")
	if at != len(raw) {
		t.Fatalf("%d bytes behind the manifest", len(raw)-at)
	}
	if !bytes.Contains(raw, []byte("basket")) {
		t.Fatal("not the manifest of the example")
	}
	return b.String()
}
