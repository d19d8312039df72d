package keyed

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// FuzzRecompress: whatever a stream holds, nothing panics, errors are of a kind,
// and what is accepted comes back as it was.
func FuzzRecompress(f *testing.F) {
	good := "\x00\x00" + entry("\x05one", "value") + entry("\x85two", "") + "\xff\xff"
	for _, groups := range [][2]string{{good, good}, {good, ""}, {frame(good), frame(good[:3], good[3:])}} {
		for _, compressed := range []string{"\x00", "\x01"} {
			h, p := groupsHandle(compressed, groups[0], groups[1])
			o := h.Offsets.(format.OffsetSlice)
			f.Add([]byte(p), o[0], o[1])
		}
	}
	unknown := strings.TrimSuffix(canonicalHeader("\x00"), simple("String")) + utf("com.example.Unknown") + i32(1)
	f.Add([]byte(unknown+good), int64(len(unknown)), int64(0))
	f.Add([]byte(unknown+good), int64(len(unknown)-10), int64(len(unknown)))
	f.Fuzz(func(t *testing.T, p []byte, a, b int64) {
		h := &format.KeyGroups{
			Codec: format.CodecFlink, Savepoint: true, Range: format.KeyGroupRange{Count: 2}, Offsets: format.OffsetSlice{a, b},
			Data: &format.File{Path: format.NewText("f"), Length: int64(len(p))},
		}
		src := inMemory(p)
		for _, compress := range []bool{true, false} {
			out, err := Recompress(t.Context(), src, h, compress)
			if err != nil {
				var e *format.Error
				if !errors.As(err, &e) {
					t.Fatalf("an error of no kind: %v", err)
				}
				continue
			}
			if out == h {
				continue
			}
			q := expand(t, src, out.Data)
			c := *out
			c.Data = &format.File{Path: format.NewText("f"), Length: int64(len(q))}
			back, err := Recompress(t.Context(), inMemory(q), &c, !compress)
			if err != nil {
				t.Fatalf("what was written is refused: %v", err)
			}
			// Chunks may be cut otherwise; data is the same.
			if compress && !bytes.Equal([]byte(expand(t, inMemory(q), back.Data)), p) {
				t.Fatal("other bytes")
			}
		}
	})
}
