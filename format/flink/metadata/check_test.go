package metadata_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// What a _metadata cannot say is refused before it is written, and what was read
// from one never is.
func TestCheck(t *testing.T) {
	wired := func(change func(*format.Savepoint)) *format.Savepoint {
		sp, err := metadata.WithVersion(fresh(), metadata.V6)
		if err != nil {
			t.Fatal(err)
		}
		change(sp)
		return sp
	}
	sub := func(f func(*format.Subtask)) *format.Savepoint {
		return wired(func(sp *format.Savepoint) { f(sp.Operators[0].Subtasks[0]) })
	}
	for _, x := range []struct {
		name string
		sp   *format.Savepoint
		kind error
		msg  string
	}{
		{"good", wired(func(*format.Savepoint) {}), nil, ""},
		{"good, not from Flink", fresh(), nil, ""},
		{"a rope and chunks", sub(func(s *format.Subtask) {
			s.Managed.Data = &format.Concat{}
			s.ManagedKeyed.(*format.KeyGroups).Data = &format.Chunks{As: vB, Length: 7}
		}), nil, ""},
		{"a null handle with states", sub(func(s *format.Subtask) { s.Managed.Wire = "\x00" }), format.ErrCorrupt, "cannot store"},
		{"another handle's tag", sub(func(s *format.Subtask) { s.ManagedKeyed.(*format.KeyGroups).Wire = "\x0b" }), format.ErrCorrupt, "tag 11"},
		{"an id the tag has no field for", sub(func(s *format.Subtask) {
			h := s.ManagedKeyed.(*format.KeyGroups)
			h.Wire, h.HandleID = "\x03", format.NewText("x")
		}), format.ErrCorrupt, "cannot store"},
		{"raw bytes that say something else", wired(func(sp *format.Savepoint) { sp.Operators[0].Name = format.RawText("a", "b\xc0\x80") }), format.ErrCorrupt, "cannot store"},
		{"properties of another kind", wired(func(sp *format.Savepoint) { sp.Kind.Type = format.TypeCheckpoint }), format.ErrCorrupt, "cannot store"},
		{"merging without a segment", sub(func(s *format.Subtask) { s.Managed.Merging = &format.FileMerging{} }), format.ErrCorrupt, "segment"},
		{"a coordinator in a file", wired(func(sp *format.Savepoint) { sp.Operators[0].Coordinator = vF }), format.ErrCorrupt, "coordinator"},
		{"finished with state", sub(func(s *format.Subtask) { s.Finished = true }), format.ErrCorrupt, "finished subtask with state"},
		{"a name that is too long", wired(func(sp *format.Savepoint) { sp.Operators[0].Name = format.NewText(strings.Repeat("x", 70000)) }), format.ErrUnsupported, "65,535"},
		{"the same, not from Flink", func() *format.Savepoint {
			sp := fresh()
			sp.Operators[0].Name = format.NewText(strings.Repeat("x", 70000))
			return sp
		}(), format.ErrUnsupported, "65,535"},
		{"a negative id", wired(func(sp *format.Savepoint) { sp.ID = -1 }), format.ErrCorrupt, "negative"},
	} {
		err := metadata.Check(context.Background(), x.sp)
		switch {
		case x.kind == nil && err != nil:
			t.Errorf("%s: %v", x.name, err)
		case x.kind != nil && (!errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.msg) || strings.Contains(err.Error(), "internal")):
			t.Errorf("%s: %v, want %v with %q", x.name, err, x.kind, x.msg)
		}
	}

	for _, dir := range testenv.Snapshots(t) {
		path := filepath.Join(dir, "_metadata")
		p, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sp, err := metadata.Decode(format.NewBytes(p), metadata.Options{})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := metadata.Check(context.Background(), sp); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
