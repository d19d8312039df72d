package opstate_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// memory is a Source of inline streams and of ropes over them. It counts, and
// refuses reads outside of a stream as real ones do.
type memory struct {
	reads, bytes atomic.Int64
	fail         error
}

func (m *memory) ReadAt(ctx context.Context, s format.Stream, p []byte, off int64) (int, error) {
	m.reads.Add(1)
	m.bytes.Add(int64(len(p)))
	if m.fail != nil {
		return 0, m.fail
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 || off+int64(len(p)) > s.Size() {
		return 0, format.Errorf(format.ErrTruncated, "bytes %d to %d of %d", off, off+int64(len(p)), s.Size())
	}
	switch s := s.(type) {
	case *format.Inline:
		return s.Data.ReadAt(p, off)
	case *format.Concat:
		return copy(p, flatten(s)[off:]), nil
	}
	return 0, fmt.Errorf("a stream of type %T", s)
}

func flatten(s format.Stream) []byte {
	c, ok := s.(*format.Concat)
	if !ok {
		p := make([]byte, s.Size())
		if _, err := s.(*format.Inline).Data.ReadAt(p, 0); err != nil {
			panic(err)
		}
		return p
	}
	var all []byte
	for _, part := range c.Parts {
		all = append(all, flatten(part.Of)[part.Off:part.Off+part.N]...)
	}
	return all
}

func content(t testing.TB, src format.Source, s format.Stream) []byte {
	t.Helper()
	p := make([]byte, s.Size())
	if c, ok := s.(*format.Concat); ok {
		at := int64(0)
		for _, part := range c.Parts {
			if _, err := src.ReadAt(t.Context(), part.Of, p[at:at+part.N], part.Off); err != nil {
				t.Fatal(err)
			}
			at += part.N
		}
	} else if _, err := src.ReadAt(t.Context(), s, p, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// elements reads a state from an element to its end.
func elements(ctx context.Context, c *opstate.Codec, src format.Source, h *format.OperatorHandle, state string, from int64) ([]string, error) {
	cur, err := c.Elements(ctx, src, h, state, from)
	if err != nil {
		return nil, err
	}
	defer cur.Close()
	var all []string
	for {
		e, err := cur.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if want := from + int64(len(all)); e.Index != want {
			return all, fmt.Errorf("element %d came as number %d", want, e.Index)
		}
		all = append(all, string(e.Value))
	}
}

func offsetsOf(t testing.TB, o format.Offsets) []int64 {
	t.Helper()
	var all []int64
	err := format.EachOffset(t.Context(), o, func(_ int64, run []int64) error {
		all = append(all, run...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// runs are all elements of the states that metas describe, of one handle.
func runs(t testing.TB, h *format.OperatorHandle, metas []format.StateMeta) []format.StateRuns {
	t.Helper()
	var all []format.StateRuns
	for _, m := range metas {
		for i, s := range h.States {
			if s.Name == m.Name && s.Mode == m.Mode {
				all = append(all, format.StateRuns{StateMeta: m, Runs: []format.ElementRun{{Handle: h, State: i, Count: s.Offsets.Len()}}})
			}
		}
	}
	if len(all) != len(metas) {
		t.Fatalf("%d of %d states found", len(all), len(metas))
	}
	return all
}

// snapshots are the folders of the corpus that hold a _metadata.
func snapshots(t testing.TB) []string {
	t.Helper()
	return testenv.Snapshots(t)
}

func i64(v int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(v))) }
