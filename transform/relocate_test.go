package transform

import (
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// TestRelocateClashes: two files that would have one name next to _metadata are
// refused, and the spellings of one file are one.
func TestRelocateClashes(t *testing.T) {
	file := func(path string, relative bool) *format.File {
		return &format.File{Path: format.NewText(path), Relative: relative, Length: 1}
	}
	in := func(files ...*format.File) format.View {
		op := sptest.ListOperator("a", len(files))
		for i, f := range files {
			op.Subtasks[i].Managed.Data = f
		}
		return format.View{Savepoint: &format.Savepoint{Operators: []*format.Operator{op}}}
	}
	for name, sp := range map[string]format.View{
		"two absolute":               in(file("s3://b/one/x", false), file("s3://b/two/x", false)),
		"relative and then absolute": in(file("x", true), file("s3://b/x", false)),
		"absolute and then relative": in(file("s3://b/x", false), file("x", true)),
	} {
		_, _, err := Relocate(t.Context(), sp, RelocateOptions{Relative: true})
		var clash *CollisionError
		if !errors.As(err, &clash) || !strings.Contains(err.Error(), "would both be x next to _metadata") {
			t.Errorf("%s: %v", name, err)
		}
	}
	sp, done, err := Relocate(t.Context(), in(file("s3://b/x", false), file("s3a://b/x", false), file("s3://b/y", false)), RelocateOptions{Relative: true})
	if err != nil || len(done.Changed) != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	for i, want := range []string{"x", "x", "y"} {
		if f := sp.Operators[0].Subtasks[i].Managed.Data.(*format.File); !f.Relative || f.Path.String() != want {
			t.Errorf("%+v", f)
		}
	}
}

// TestRelocateMove: each relative reference is decided about once.
func TestRelocateMove(t *testing.T) {
	op := sptest.ListOperator("a", 4)
	for i, name := range []string{"moves", "stays", "gone", "moves"} {
		op.Subtasks[i].Managed.Data = &format.File{Path: format.NewText(name), Relative: true, Length: 1}
	}
	asked := map[string]int{}
	sp, done, err := Relocate(t.Context(), format.View{Savepoint: &format.Savepoint{Operators: []*format.Operator{op}}}, RelocateOptions{Move: func(name string) (string, bool, error) {
		asked[name]++
		if name == "stays" {
			return "", false, nil
		}
		return "s3://b/" + name, name == "moves", nil
	}})
	if err != nil || len(asked) != 3 || asked["moves"] != 1 {
		t.Fatalf("%v, %v", asked, err)
	}
	if len(done.Changed) != 1 || done.Changed[0] != (Relocated{From: "moves", To: "s3://b/moves", Handles: 2}) || len(done.Kept) != 1 || done.Kept[0].From != "gone" || done.Relative != 2 {
		t.Errorf("%+v", done)
	}
	for i, want := range []string{"s3://b/moves", "stays", "gone", "s3://b/moves"} {
		if f := sp.Operators[0].Subtasks[i].Managed.Data.(*format.File); f.Path.String() != want || f.Relative != (want == "stays" || want == "gone") {
			t.Errorf("%+v", f)
		}
	}
}
