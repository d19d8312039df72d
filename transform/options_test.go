package transform

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// edits are all edits, each with the options that it has for two operators and a
// state.
func edits(v format.View) map[string]func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
	return map[string]func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error){
		"Drop": func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
			out, _, err := Drop(ctx, v, DropOptions{Operators: op, States: state})
			return out, err
		},
		"Filter": func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
			out, _, err := Filter(ctx, v, FilterOptions{Operators: op, States: state, Keep: func(FilterElement) (bool, error) { return true, nil }})
			return out, err
		},
		"Merge": func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
			out, _, err := Merge(ctx, v.With(&format.Savepoint{}), MergeOptions{From: v.Savepoint, Operators: op, States: state})
			return out, err
		},
		"PruneUnion": func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
			out, _, err := PruneUnion(ctx, v, PruneOptions{Keep: KeepDistinct, Operators: op, States: state})
			return out, err
		},
		"Set": func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
			list := format.ModeList
			out, _, err := Set(ctx, v, SetOptions{Mode: &list, Operators: op, States: state})
			return out, err
		},
		"Rename": func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
			names := map[string]string{}
			for _, s := range state {
				names[s] = "other"
			}
			out, _, err := Rename(ctx, v, RenameOptions{Operators: op, States: names})
			return out, err
		},
		"DiagnoseUnions": func(ctx context.Context, op format.Selector, state format.Globs) (format.View, error) {
			_, err := DiagnoseUnions(ctx, v, UnionOptions{Operators: op, States: state})
			return v, err
		},
	}
}

// TestSelectionOfNothing: an operator or a state that is not there is an error in
// every edit, and the view comes back as it was.
func TestSelectionOfNothing(t *testing.T) {
	in := sptest.View(sptest.Operator("a", nativeHandle("n", st{"u", format.ModeUnion, []string{"1"}})), sptest.Operator("b", nil))
	for name, edit := range edits(in) {
		for _, tt := range []struct {
			op    format.Selector
			state format.Globs
			found bool
		}{
			{nil, format.Globs{"u"}, true},
			{format.Selector{"a"}, format.Globs{"u"}, true},
			{format.Selector{"nobody"}, nil, false},
			{format.Selector{"a", "nobody"}, format.Globs{"u"}, false},
			{nil, format.Globs{"nothing"}, false},
			{format.Selector{"b"}, format.Globs{"u"}, false},
			{nil, format.Globs{"u", "n*"}, false},
		} {
			out, err := edit(t.Context(), tt.op, tt.state)
			if tt.found && err != nil || !tt.found && !errors.Is(err, format.ErrNoMatch) {
				t.Errorf("%s of %q, %q: %v", name, tt.op, tt.state, err)
			}
			if !tt.found && name != "Merge" && out.Savepoint != in.Savepoint {
				t.Errorf("%s of %q, %q: an error and another savepoint", name, tt.op, tt.state)
			}
		}
	}
}

// TestOptionsRefused: options that cannot be are errors, and not guessed at.
func TestOptionsRefused(t *testing.T) {
	in := sptest.View(sptest.Operator("a", nativeHandle("n", st{"u", format.ModeUnion, []string{"1"}})))
	list := format.ModeList
	for name, tt := range map[string]struct {
		edit func() (format.View, error)
		want error // nil: any
	}{
		"prune, no policy": {func() (format.View, error) { v, _, err := PruneUnion(t.Context(), in, PruneOptions{}); return v, err }, nil},
		"prune, unknown place": {func() (format.View, error) {
			v, _, err := PruneUnion(t.Context(), in, PruneOptions{Keep: KeepDistinct, Place: "last"})
			return v, err
		}, nil},
		"drop nothing":        {func() (format.View, error) { v, _, err := Drop(t.Context(), in, DropOptions{}); return v, err }, nil},
		"filter without Keep": {func() (format.View, error) { v, _, err := Filter(t.Context(), in, FilterOptions{}); return v, err }, nil},
		"merge without From":  {func() (format.View, error) { v, _, err := Merge(t.Context(), in, MergeOptions{}); return v, err }, nil},
		"reencode for nothing": {func() (format.View, error) {
			v, _, err := Reencode(t.Context(), in, ReencodeOptions{})
			return v, err
		}, nil},
		"relocate two ways": {func() (format.View, error) {
			v, _, err := Relocate(t.Context(), in, RelocateOptions{Relative: true, Absolute: "file:/x"})
			return v, err
		}, nil},
		"rescale to 0": {func() (format.View, error) {
			v, _, err := Rescale(t.Context(), in, RescaleOptions{})
			return v, err
		}, assign.ErrParallelism},
		"rescale, unknown strategy": {func() (format.View, error) {
			v, _, err := Rescale(t.Context(), in, RescaleOptions{To: 1, Strategy: "luck"})
			return v, err
		}, nil},
		"set states without mode": {func() (format.View, error) {
			v, _, err := Set(t.Context(), in, SetOptions{States: format.Globs{"u"}})
			return v, err
		}, nil},
		"set max -1": {func() (format.View, error) {
			v, _, err := Set(t.Context(), in, SetOptions{Mode: &list, MaxParallelism: -1})
			return v, err
		}, assign.ErrParallelism},
		"set max 32769": {func() (format.View, error) {
			v, _, err := Set(t.Context(), in, SetOptions{MaxParallelism: format.MaxKeyGroups + 1})
			return v, err
		}, assign.ErrParallelism},
		"simulate from 0": {func() (format.View, error) {
			_, err := Simulate(t.Context(), 1, 0, 1, StrategyFlink)
			return in, err
		}, assign.ErrParallelism},
	} {
		v, err := tt.edit()
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) || v.Savepoint != in.Savepoint {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, r, err := Set(t.Context(), in, SetOptions{MaxParallelism: format.MaxKeyGroups}); err != nil || len(r.MaxParallelism) != 1 || v.Operators[0].MaxParallelism != format.MaxKeyGroups {
		t.Errorf("the largest max parallelism: %v", err)
	}
}

// describing counts how often a handle is described, and fails for one state.
type describing struct {
	format.OperatorCodec
	n      *int
	broken string
}

func (d describing) Describe(ctx context.Context, src format.Source, h *format.OperatorHandle) ([]format.StateMeta, error) {
	*d.n++
	return d.OperatorCodec.Describe(ctx, src, h)
}

func (d describing) Elements(ctx context.Context, src format.Source, h *format.OperatorHandle, state string, from int64) (format.Cursor, error) {
	if state == d.broken {
		return nil, format.Errorf(format.ErrCorrupt, "broken")
	}
	return d.OperatorCodec.Elements(ctx, src, h, state, from)
}

// TestUnionsInOnePass: however many union states an operator has, each of its
// handles is described once. With Partial, one that cannot be read keeps none of
// the others from being reported.
func TestUnionsInOnePass(t *testing.T) {
	const states = 50
	var handles []*format.OperatorHandle
	for i := range 3 {
		var all []st
		for k := range states {
			all = append(all, st{fmt.Sprint("u", k), format.ModeUnion, []string{fmt.Sprint(k)}})
		}
		handles = append(handles, nativeHandle(fmt.Sprint("h", i), all...))
	}
	in := sptest.View(sptest.Operator("a", handles...))
	n := 0
	codec, err := in.Codec(format.CodecNative)
	if err != nil {
		t.Fatal(err)
	}
	use := func(broken string) {
		in.Codecs = sptest.CodecsFunc(func(format.CodecID) (format.OperatorCodec, error) { return describing{codec, &n, broken}, nil })
	}
	use("")
	all, err := DiagnoseUnions(t.Context(), in, UnionOptions{})
	if err != nil || len(all) != states || n != len(handles) {
		t.Errorf("%d states, %d descriptions: %v", len(all), n, err)
	}
	for _, r := range all {
		if r.Verdict != VerdictProduct || r.Elements != 3 {
			t.Errorf("%+v", r)
		}
	}
	use("u7")
	if _, err := DiagnoseUnions(t.Context(), in, UnionOptions{}); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("a broken state: %v", err)
	}
	all, err = DiagnoseUnions(t.Context(), in, UnionOptions{Partial: true})
	if err != nil || len(all) != states {
		t.Fatalf("%d states: %v", len(all), err)
	}
	for _, r := range all {
		if broken := r.State == "u7"; broken != errors.Is(r.Err, format.ErrCorrupt) || broken == (r.Verdict == VerdictProduct) {
			t.Errorf("%+v", r)
		}
	}
}
