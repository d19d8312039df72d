package diff

import (
	"context"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// TestDiffWords: how differences of elements are put, and that states of other
// modes are not compared by elements.
func TestDiffWords(t *testing.T) {
	in := func(mode format.Mode, name string, subtasks ...string) format.View {
		op := sptest.Operator("op", make([]*format.OperatorHandle, len(subtasks))...)
		for i, elems := range subtasks {
			s := st{name, mode, strings.Split(elems, ",")}
			if mode == format.ModeBroadcast {
				s.Elements = []string{elems}
			}
			op.Subtasks[i].Managed = rawStates(s)
		}
		return sptest.View(op)
	}
	list, union := format.ModeList, format.ModeUnion
	const positions = "SourceReaderState"
	for _, tt := range []struct {
		a, b format.View
		want string
	}{
		{in(union, "s", "a,b"), in(union, "s", "a,b,b,a"), "elements: op/s 2 → 4 elements, 2 distinct unchanged: multiplied by 2"},
		{in(union, "s", "a,b,b,a"), in(union, "s", "a,b"), "elements: op/s 4 → 2 elements, 2 distinct unchanged: divided by 2"},
		{in(union, "s", "a,b"), in(union, "s", "a,b,b"), "elements: op/s 2 → 3 elements, 2 distinct unchanged: more copies"},
		{in(union, "s", "a,b"), in(union, "s", "b,a"), ""},
		{in(list, positions, "a,b"), in(list, positions, "a,c"), "offsets: op/" + positions + " elements: 1 added, 1 removed"},
		{in(union, positions, "a,b"), in(union, positions, "a,c"), "elements: op/" + positions + " elements: 1 added, 1 removed"},
		{in(list, "s", "a,b"), in(format.ModeBroadcast, "s", "c"), "states: op/s mode list → broadcast"},
		{in(format.ModeBroadcast, "s", "c"), in(list, "s", "a,b"), "states: op/s mode broadcast → list"},
		{in(format.ModeBroadcast, "s", "a=1", "a=1 b=2"), in(format.ModeBroadcast, "s", "a=1 b=2", "b=2 a=1"), "elements: op/s the same keys, but not in every replica; different maps: 1 removed"},
		{in(format.ModeBroadcast, "s", "a=1 b=2", "b=2 a=1"), in(format.ModeBroadcast, "s", "a=1", "a=1 b=2"), "elements: op/s the same keys, but not in every replica; different maps: 1 added"},
	} {
		got := strings.Join(differences(diffOf(t, wordMaps(tt.a), wordMaps(tt.b), Options{EntryText: wordText})), "; ")
		if got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestDiffLargeMaps: a map above the limit is not taken apart.
func TestDiffLargeMaps(t *testing.T) {
	in := func(m string) format.View {
		return sptest.View(sptest.Operator("op", rawStates(st{"s", format.ModeBroadcast, []string{m}})))
	}
	o := Options{EntryText: func(context.Context, int, *format.OperatorHandle, int) (func(format.MapEntry) (string, string, error), error) {
		return func(e format.MapEntry) (string, string, error) {
			if len(e.Stored) > maxMaps {
				t.Errorf("a map of %d bytes was taken apart", len(e.Stored))
			}
			return string(e.Key), string(e.Value), nil
		}, nil
	}}
	if got := differences(diffOf(t, wordMaps(in(strings.Repeat("a", maxMaps+1))), wordMaps(in("b")), o)); len(got) != 1 || got[0] != "elements: op/s different maps: 1 added, 1 removed" {
		t.Errorf("%q", got)
	}
}
