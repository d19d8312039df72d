package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/transform"
)

// failsWith is a source all of whose reads fail.
type failsWith struct{ err func() error }

func (f failsWith) ReadAt(context.Context, format.Stream, []byte, int64) (int, error) {
	return 0, f.err()
}

// TestCheckUnionStops: no room for a temporary file, and a context that is over,
// say nothing of the state. They end a check, and are no finding.
func TestCheckUnionStops(t *testing.T) {
	full := &transform.TempError{Err: syscall.ENOSPC}
	ctx, cancel := context.WithCancel(t.Context())
	for want, read := range map[error]func() error{
		full:             func() error { return full },
		context.Canceled: func() error { cancel(); return format.Errorf(format.ErrUnsupported, "a read that the end came before") },
	} {
		in := sptest.View(sptest.Operator("op", nativeHandle("a", st{"u", format.ModeUnion, chars("ab")}), nativeHandle("b", st{"u", format.ModeUnion, chars("ab")})))
		in.Source = failsWith{read}
		r, err := Run(ctx, in, Options{})
		if !errors.Is(err, want) || r != nil {
			t.Errorf("%v: %v, %+v", want, err, r)
		}
		ctx, cancel = context.WithCancel(t.Context())
	}
	cancel()
}

// TestCheckUnion: what a check says of union state, and how bad it is.
func TestCheckUnion(t *testing.T) {
	for _, c := range []struct {
		name    string
		lists   []string
		to      int32
		finding string
		message string
	}{
		{"sound", []string{"ab", "cd", "ef"}, 0, "note union",
			"a restore assigns all 6 elements (12 B) to each of 3 subtasks: 18 elements, 36 B in total"},
		{"multiplied, several orders", []string{"abc", "cba", "bac"}, 0, "warning union-multiplied",
			"restores multiplied it: each of its 3 distinct elements occurs 3 times; a restore assigns all 9 elements (18 B) to each of 3 subtasks: 27 elements, 54 B in total, which the next snapshot will hold if the job adds them again"},
		{"multiplied, elements that repeat", []string{"aab", "baa"}, 4, "warning union-multiplied",
			"restores multiplied it: each of its 2 distinct elements occurs 2 to 4 times; a restore assigns all 6 elements (12 B) to each of 4 subtasks"},
		{"subtasks that lack some", []string{"abcd", "abcd", "abc", "abd"}, 0, "warning union-repeats",
			"restores may have multiplied it, which is not proven because its subtasks hold different elements: 14 elements, 4 distinct, each 3 to 4 times, 3 to 4 in each of 4 subtasks, 2 in all of them; a restore assigns"},
		{"elements of a restore, and more since", []string{"abcdefgh", "abijklmn", "opqrabst"}, 0, "warning union-repeats",
			"24 elements, 20 distinct, each 1 to 3 times, 8 in each of 3 subtasks, 2 in all of them"},
		{"all in one subtask, as after a rescale", []string{"aaabbb", "", ""}, 0, "warning union-repeats",
			"which is not proven because no element is in two subtasks, and elements repeat inside them: 6 elements, 2 distinct, each 3 times, 0 to 6 in each of 3 subtasks"},
		{"some repeat inside a subtask", []string{"aabb", "cd", "ef", "g"}, 0, "note union",
			"elements repeat: 9 elements, 7 distinct, each 1 to 2 times, 1 to 4 in each of 4 subtasks; a restore assigns"},
		{"one subtask much larger", []string{"abcdefghijkl", "ab", "cd", "ef"}, 0, "note union",
			"elements repeat: 18 elements, 12 distinct, each 1 to 2 times, 2 to 12 in each of 4 subtasks"},
		{"counters, some equal", []string{"a", "a", "b", "a"}, 0, "note union",
			"elements repeat: 4 elements, 2 distinct, each 1 to 3 times, 1 in each of 4 subtasks"},
		{"counters, all equal", []string{"a", "a", "a"}, 0, "note union",
			"all 3 subtasks hold the same list, one each, which also happens if each subtask writes one equal value; a restore assigns all 3 elements (6 B) to each of 3 subtasks"},
		{"one of two lacks some", []string{"abcdef", "abcd"}, 0, "warning union-repeats",
			"10 elements, 6 distinct, each 1 to 2 times, 4 to 6 in each of 2 subtasks, 4 in all of them"},
		{"an equal share each", []string{"ab", "cd"}, 0, "note union", "a restore assigns all 4 elements (8 B) to each of 2 subtasks"},
		{"restored by one subtask", []string{"ab", "ab"}, 1, "", ""},
		{"empty", []string{"", ""}, 0, "", ""},
	} {
		var handles []*format.OperatorHandle
		for i, l := range c.lists {
			handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"u", format.ModeUnion, chars(l)}))
		}
		r, err := Run(t.Context(), sptest.View(sptest.Operator("op", handles...)), Options{Parallelism: c.to})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range r.Findings {
			if f.State != "u" {
				continue
			}
			got = append(got, string(f.Severity)+" "+f.Code)
			if !strings.HasPrefix(f.Message, c.message) && !strings.Contains(f.Message, c.message) {
				t.Errorf("%s: %q, not %q", c.name, f.Message, c.message)
			}
			if (f.Advice == nil) != (f.Message == c.message && f.Severity == finding.Note || strings.HasPrefix(f.Message, "a restore")) {
				t.Errorf("%s: advice %v", c.name, f.Advice)
			}
		}
		if strings.Join(got, ", ") != c.finding {
			t.Errorf("%s: %q, not %q", c.name, got, c.finding)
		}
	}
}

// TestCheckLargeUnion: from which size on there is a warning, and from which one
// on elements are not read unless their lengths ask for it.
func TestCheckLargeUnion(t *testing.T) {
	large := func(n int64, counts ...int) *format.Operator {
		var handles []*format.OperatorHandle
		for i, count := range counts {
			h := &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.File{Path: format.NewText(fmt.Sprint("f", i)), Relative: true, Length: n}}
			offsets := format.OffsetSlice{}
			for k := range count {
				offsets = append(offsets, int64(k))
			}
			h.States = []format.NamedState{{Name: format.NewText("u"), Mode: format.ModeUnion, Offsets: offsets}}
			handles = append(handles, h)
		}
		return sptest.Operator("op", handles...)
	}
	check := func(op *format.Operator, src format.Source) Finding {
		t.Helper()
		in := sptest.View(op)
		in.Source = src
		r, err := Run(t.Context(), in, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			if f.State == "u" {
				return f
			}
		}
		t.Fatal("no finding")
		return Finding{}
	}
	// 2 × 2 × 16 MiB is the threshold. The streams are missing, which is another finding.
	if f := check(large(16<<20, 3, 4), &missing{}); f.Code != "union-large" || f.Severity != finding.Warning || !strings.HasSuffix(f.Message, "a restore assigns all 7 elements (32.0 MiB) to each of 2 subtasks: 14 elements, 64.0 MiB in total") {
		t.Errorf("%+v", f)
	}
	if f := check(large(16<<20-1, 3, 4), &missing{}); f.Code != "union" || f.Severity != finding.Note || !strings.HasSuffix(f.Message, "64.0 MiB in total") {
		t.Errorf("%+v", f)
	}
	small, more := &missing{}, &missing{}
	check(large(1<<20, 3, 4), small)
	if f := check(large(700<<20, 3, 4), more); f.Code != "union-large" || !strings.HasSuffix(f.Message, "(1.4 GiB) to each of 2 subtasks: 14 elements, 2.7 GiB in total") || f.Advice == nil {
		t.Errorf("%+v", f)
	}
	if more.reads >= small.reads {
		t.Errorf("%d reads, %d of less state: elements are looked at", more.reads, small.reads)
	}
	// Lengths that are alike ask for it, whatever the size.
	if f := check(large(700<<20, 30, 30), &missing{}); f.Code != "union-multiplied" || !strings.HasPrefix(f.Message, "its 2 subtasks hold elements of the same lengths, so a restore may have multiplied them; a restore assigns") {
		t.Errorf("%+v", f)
	}
	// 1.4 GiB at parallelism 1,404.
	op := large((1400<<20)/1404, slicesOf(1404, 5)...)
	op.MaxParallelism = 2048
	op.Subtasks[7].Managed.States[0].Offsets = format.OffsetSlice{0, 1}
	if f := check(op, &missing{}); f.Code != "union-large" || !strings.Contains(f.Message, "all 7,017 elements (1.4 GiB) to each of 1404 subtasks: 9,851,868 elements, 1.9 TiB in total") {
		t.Errorf("%+v", f)
	}
}

// missing is a source that has nothing.
type missing struct{ reads int }

func (m *missing) ReadAt(context.Context, format.Stream, []byte, int64) (int, error) {
	m.reads++
	return 0, format.Errorf(format.ErrMissing, "not here")
}

func slicesOf(n, v int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// TestCheckUnionNextToDamage: a union state that cannot be read does not keep a check from
// reading the others of its operator.
func TestCheckUnionNextToDamage(t *testing.T) {
	var handles []*format.OperatorHandle
	for _, name := range []string{"a", "b"} {
		h := nativeHandle(name, st{"u", format.ModeUnion, chars("xy")}, st{"v", format.ModeUnion, chars("cd")})
		h.Data = sptest.Inline(name, "\xa1x\xa1y\xc1c\xa1d") // 0xc1 begins no value
		handles = append(handles, h)
	}
	r, err := Run(t.Context(), sptest.View(sptest.Operator("op", handles...)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Findings {
		if f.State == "u" || f.Code == "unreadable" {
			got = append(got, f.Code)
		}
	}
	if want := []string{"unreadable", "union-multiplied"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, f := range r.Findings {
		if f.State == "u" && !strings.HasPrefix(f.Message, "restores multiplied it: each of its 2 distinct elements occurs 2 times") {
			t.Errorf("%s", f.Message)
		}
	}
}
