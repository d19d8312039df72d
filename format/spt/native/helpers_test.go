package native_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
)

// memory is a Source of inline streams and ropes over them. It counts reads and
// the bytes that were asked for.
type memory struct {
	reads int
	bytes int64
}

func (m *memory) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
	m.reads++
	m.bytes += int64(len(p))
	return m.read(s, p, off)
}

func (m *memory) read(s format.Stream, p []byte, off int64) (int, error) {
	switch s := s.(type) {
	case *format.Inline:
		n, err := s.Data.ReadAt(p, off)
		if err == nil && n < len(p) {
			err = format.Errorf(format.ErrTruncated, "%d of %d bytes", n, len(p))
		}
		return n, err
	case *format.Concat:
		n := 0
		for _, part := range s.Parts {
			if off < part.N && n < len(p) {
				k := min(part.N-off, int64(len(p)-n))
				if _, err := m.read(part.Of, p[n:n+int(k)], part.Off+off); err != nil {
					return n, err
				}
				n += int(k)
				off = 0
			} else {
				off -= part.N
			}
		}
		if n < len(p) {
			return n, format.Errorf(format.ErrTruncated, "%d of %d bytes", n, len(p))
		}
		return n, nil
	}
	return 0, fmt.Errorf("a stream of %T", s)
}

func inline(p []byte) *format.Inline { return &format.Inline{Data: format.NewBytes(p)} }

// unhex reads hex, leaving out spaces and comments behind "//".
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	p, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustMarshal(t testing.TB, v any) []byte {
	t.Helper()
	p, err := native.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// readState reads a state from an element on.
func readState(src format.Source, h *format.OperatorHandle, state string, from int64) ([][]byte, error) {
	cur, err := native.Codec{}.Elements(context.Background(), src, h, state, from)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for {
		e, err := cur.Next()
		if err == io.EOF {
			return all, cur.Close()
		}
		if err != nil {
			if _, again := cur.Next(); again != err {
				return nil, fmt.Errorf("internal error: %w is followed by %v", err, again)
			}
			return all, err
		}
		if e.Index != from+int64(len(all)) {
			return all, fmt.Errorf("internal error: element %d is numbered %d", from+int64(len(all)), e.Index)
		}
		all = append(all, e.Clone().Value)
	}
}

func readEntries(src format.Source, h *format.KeyGroups, from int32) ([]format.KeyedEntry, error) {
	var all []format.KeyedEntry
	groups := format.KeyGroupRange{First: from, Count: max(1, h.Range.Last()-from+1)}
	err := format.EachKeyedEntry(context.Background(), src, native.KeyedCodec{}, h, format.KeyedSelection{Groups: groups}, func(e format.KeyedEntry) error {
		all = append(all, e.Clone())
		return nil
	})
	return all, err
}

// wantKind fails the test unless err is of one of the kinds and says where.
func wantKind(t *testing.T, err error, what string, kinds ...error) {
	t.Helper()
	for _, k := range kinds {
		if errors.Is(err, k) {
			return
		}
	}
	t.Errorf("%s: %v, want one of %v", what, err, kinds)
}
