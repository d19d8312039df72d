package format_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func file(name string) *format.File { return &format.File{Path: format.NewText(name), Length: 1} }

// everything is a savepoint with a stream in every place there is, named by
// where it stands.
func everything() *format.Savepoint {
	handle := func(name string) *format.OperatorHandle {
		return &format.OperatorHandle{Data: &format.KeyGroupStream{Data: file(name)}}
	}
	return &format.Savepoint{Operators: []*format.Operator{
		{UID: format.NewText("one"), Coordinator: file("coordinator"), Subtasks: []*format.Subtask{
			{Index: 0, Managed: handle("managed"), Raw: handle("raw"),
				ManagedKeyed: &format.Incremental{Meta: file("meta"),
					Shared:  []format.NamedStream{{Name: format.NewText("1.sst"), Data: file("shared")}},
					Private: []format.NamedStream{{Name: format.NewText("CURRENT"), Data: file("private")}, {Name: format.NewText("none")}}},
				RawKeyed: &format.KeyGroups{Data: file("rawkeyed")},
				Input:    []*format.ChannelHandle{{Data: file("in0")}, {Data: file("in1")}},
				Output:   []*format.ChannelHandle{{Data: file("out")}},
				Legacy:   []format.Stream{file("legacy"), nil}},
			{Index: 3, ManagedKeyed: &format.Changelog{
				Materialized: []format.KeyedHandle{&format.KeyGroups{Data: file("mat")}, nil},
				Changes: []format.KeyedHandle{&format.ChangelogMemory{},
					&format.ChangelogStream{Streams: []format.OffsetStream{{Data: file("log0")}, {Offset: 1, Data: file("log1")}}}}}},
		}},
		{Name: format.NewText("two"), Subtasks: []*format.Subtask{{Index: 0, Finished: true}, {Index: 1}}},
		{ID: format.OperatorID{0xab, 0xcd}, Finished: true},
	}}
}

var everyPlace = []string{
	`operator "one"/coordinator: coordinator`,
	`operator "one"/subtask 0/operator state: managed`,
	`operator "one"/subtask 0/raw operator state: raw`,
	`operator "one"/subtask 0/keyed state: meta`,
	`operator "one"/subtask 0/keyed state/"1.sst": shared`,
	`operator "one"/subtask 0/keyed state/"CURRENT": private`,
	`operator "one"/subtask 0/raw keyed state: rawkeyed`,
	`operator "one"/subtask 0/input channels: in0`,
	`operator "one"/subtask 0/input channels: in1`,
	`operator "one"/subtask 0/output channels: out`,
	`operator "one"/subtask 0/legacy state: legacy`,
	`operator "one"/subtask 3/keyed state: mat`,
	`operator "one"/subtask 3/keyed state: log0`,
	`operator "one"/subtask 3/keyed state: log1`,
}

func TestEachStream(t *testing.T) {
	sp := everything()
	var got []string
	err := sp.EachStream(func(p format.Place, s format.Stream) error {
		got = append(got, fmt.Sprintf("%s: %s", p, s.(*format.File).Path))
		return nil
	})
	if err != nil || !reflect.DeepEqual(got, everyPlace) {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(everyPlace, "\n"))
	}
	if labels := sp.Operators[2].Label() + sp.Operators[1].Label(); labels != "abcd0000two" {
		t.Error(labels)
	}
	// It stops at any stream.
	stop := errors.New("stop")
	for at := range everyPlace {
		n := 0
		err := sp.EachStream(func(format.Place, format.Stream) error {
			if n++; n > at {
				return stop
			}
			return nil
		})
		if err != stop || n != at+1 {
			t.Errorf("stopped at %d: %v after %d", at, err, n)
		}
	}
}

// TestMapStreamsNothing: what changes nothing gives the savepoint itself.
func TestMapStreamsNothing(t *testing.T) {
	for _, sp := range []*format.Savepoint{everything(), {}} {
		got, err := sp.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) { return s, nil })
		if err != nil || got != sp {
			t.Errorf("%p became %p, %v", sp, got, err)
		}
	}
}

// TestMapStreamsOne: a change of one stream copies the nodes on the way to it,
// shares all others, and leaves the original as it was.
func TestMapStreamsOne(t *testing.T) {
	for _, place := range everyPlace {
		_, target, _ := strings.Cut(place, ": ")
		sp := everything()
		for _, with := range []format.Stream{file("new"), nil} {
			got, err := sp.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) {
				if s.(*format.File).Path.String() == target {
					return with, nil
				}
				return s, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(sp, everything()) {
				t.Fatalf("%s: the original changed", target)
			}
			var names []string
			_ = got.EachStream(func(_ format.Place, s format.Stream) error {
				names = append(names, s.(*format.File).Path.String())
				return nil
			})
			var want []string
			for _, p := range everyPlace {
				switch _, name, _ := strings.Cut(p, ": "); {
				case name != target:
					want = append(want, name)
				case with != nil:
					want = append(want, "new")
				}
			}
			if !reflect.DeepEqual(names, want) {
				t.Errorf("%s: %v, want %v", target, names, want)
			}
			// Shared: the operators and subtasks that are not on the way.
			if got == sp || got.Operators[0] == sp.Operators[0] || got.Operators[1] != sp.Operators[1] || got.Operators[2] != sp.Operators[2] {
				t.Errorf("%s: operators", target)
			}
			for i := range 2 {
				onTheWay := strings.Contains(place, fmt.Sprintf("/subtask %d/", sp.Operators[0].Subtasks[i].Index))
				if (got.Operators[0].Subtasks[i] != sp.Operators[0].Subtasks[i]) != onTheWay {
					t.Errorf("%s: subtask %d", target, i)
				}
			}
			if target != "raw" && got.Operators[0].Subtasks[0].Raw != sp.Operators[0].Subtasks[0].Raw {
				t.Errorf("%s: the raw handle was copied", target)
			}
			if target == "in1" && got.Operators[0].Subtasks[0].Input[0] != sp.Operators[0].Subtasks[0].Input[0] {
				t.Errorf("%s: its neighbour was copied", target)
			}
		}
	}
}

func TestMapStreamsError(t *testing.T) {
	sp, stop := everything(), errors.New("stop")
	got, err := sp.MapStreams(func(p format.Place, s format.Stream) (format.Stream, error) {
		if p.Slot == format.SlotOutput {
			return nil, stop
		}
		return file("changed before"), nil
	})
	if got != nil || err != stop || !reflect.DeepEqual(sp, everything()) {
		t.Errorf("%v, %v", got, err)
	}
}
