package format_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func twoOperators(t *testing.T) *format.Savepoint {
	t.Helper()
	a := &format.Operator{UID: format.NewText("enrich"), Name: format.NewText("Enrich orders"), ID: format.OperatorIDOf("enrich")}
	b := &format.Operator{ID: format.OperatorIDOf("sink")} // before Flink 2.0 there are no uids
	c := &format.Operator{Name: format.NewText("Enrich users"), ID: format.OperatorIDOf("other")}
	return &format.Savepoint{Operators: []*format.Operator{a, b, c}}
}

func TestSelector(t *testing.T) {
	sp := twoOperators(t)
	sink := format.OperatorIDOf("sink").String()
	for _, c := range []struct {
		sel  format.Selector
		want []int
	}{
		{nil, []int{0, 1, 2}},
		{format.Selector{}, nil},
		{format.Selector{"enrich"}, []int{0}},
		{format.Selector{"sink"}, []int{1}}, // by the id that Flink computes from the uid
		{format.Selector{sink}, []int{1}},
		{format.Selector{strings.ToUpper(sink)}, []int{1}},
		{format.Selector{sink[:4]}, []int{1}},
		{format.Selector{"Enrich*"}, []int{0, 2}},
		{format.Selector{"*"}, []int{0, 1, 2}}, // also what has neither uid nor name
		{format.Selector{sink[:3] + "*"}, []int{1}},
		{format.Selector{"Enrich users", "enrich"}, []int{0, 2}}, // in file order
		{format.ByID(sp.Operators[2].ID), []int{2}},
	} {
		got, err := c.sel.Operators(sp)
		if err != nil {
			t.Errorf("%q: %v", c.sel, err)
			continue
		}
		var at []int
		for _, op := range got {
			at = append(at, slices.Index(sp.Operators, op))
		}
		if !slices.Equal(at, c.want) {
			t.Errorf("%q chooses %v, want %v", c.sel, at, c.want)
		}
	}
}

func TestSelectorMatchesNothing(t *testing.T) {
	sp := twoOperators(t)
	sink := format.OperatorIDOf("sink").String()
	for _, sel := range []format.Selector{{"enrich", "nobody"}, {sink[:4-1]}, {""}} {
		_, err := sel.Operators(sp)
		var none *format.NoMatchError
		if !errors.As(err, &none) || !errors.Is(err, format.ErrNoMatch) || !slices.Contains(none.Available, "enrich") || !strings.Contains(none.Hint(), `"Enrich users"`) {
			t.Errorf("%q: %v", sel, err)
		}
	}
	first := *sp.Operators[0]
	first.ID = sp.Operators[1].ID
	first.ID[15]++
	sp.Operators = append(sp.Operators, &first)
	if _, err := (format.Selector{sink[:8]}).Operators(sp); err == nil || !strings.Contains(err.Error(), "a prefix of 2") {
		t.Errorf("a beginning of two ids: %v", err)
	}
	if _, err := (format.Selector{"Enrich*"}).Operator(sp); err == nil {
		t.Error("several operators where one is expected")
	}
	if err := (format.Globs{"a*", "x"}).Check("state", []string{"ab", "c"}); err == nil || err.Error() != `no state matches "x"` {
		t.Errorf("Check: %v", err)
	}
}

func TestMapOperators(t *testing.T) {
	sp := twoOperators(t)
	same, err := sp.MapOperators(func(op *format.Operator) (*format.Operator, error) { return op, nil })
	if err != nil || same != sp {
		t.Errorf("nothing changes: %p, want the argument %p, %v", same, sp, err)
	}
	fewer, err := sp.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		if op.UID.String() == "enrich" {
			return nil, nil
		}
		return op, nil
	})
	if err != nil || len(fewer.Operators) != 2 || fewer.Operators[0] != sp.Operators[1] || len(sp.Operators) != 3 {
		t.Errorf("one is left out: %v, %v", fewer, err)
	}
	stop := errors.New("stop")
	if _, err := sp.MapOperators(func(*format.Operator) (*format.Operator, error) { return nil, stop }); !errors.Is(err, stop) || !strings.Contains(err.Error(), `operator "enrich"`) {
		t.Errorf("an error: %v", err)
	}
}

func TestMapManaged(t *testing.T) {
	h := &format.OperatorHandle{Codec: format.CodecFlink}
	op := &format.Operator{Subtasks: []*format.Subtask{{Index: 0}, {Index: 1, Managed: h}}}
	calls := 0
	out, err := op.MapManaged(func(in *format.OperatorHandle) (*format.OperatorHandle, error) {
		if calls++; in != h {
			t.Errorf("called with %v", in)
		}
		return nil, nil
	})
	if err != nil || calls != 1 || out.Subtasks[0] != op.Subtasks[0] || out.Subtasks[1].Managed != nil || op.Subtasks[1].Managed != h {
		t.Errorf("the handle is taken away: %v, %v", out, err)
	}
}

func TestEachKeyed(t *testing.T) {
	base, change := &format.KeyGroups{}, &format.ChangelogStream{}
	inner := &format.Changelog{Materialized: []format.KeyedHandle{base}, Changes: []format.KeyedHandle{change}}
	outer := &format.Changelog{Materialized: []format.KeyedHandle{inner}}
	var got []format.KeyedHandle
	format.EachKeyed(outer, func(h format.KeyedHandle) { got = append(got, h) })
	if want := []format.KeyedHandle{outer, inner, base, change}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	format.EachKeyed(nil, func(format.KeyedHandle) { t.Error("called for nil") })
}

func TestByName(t *testing.T) {
	for _, name := range []string{"a*", "a?", "a[b]", `a\b`, "plain"} {
		g := format.ByName(name)
		if !g.Match(name) || g.Match("ab") || g.Match("a"+name) {
			t.Errorf("%q", name)
		}
	}
	if format.ByName().Match("any") {
		t.Error("no name chooses one")
	}
}

// Names are not paths: a slash in them is a character like any other. And "*"
// chooses what has no name at all.
func TestPatternsAndSlashes(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*", "a/b", true}, {"a*", "a/b", true}, {"a?b", "a/b", true}, {"*/b", "a/b", true}, {"a[/]b", "a/b", true}, {"a/*", "a/b/c", true},
		{"*", "", true}, {"a/b", "a/b", true}, {"*b", "a/c", false}, {"a/?", "a/", false},
	} {
		if got := (format.Globs{tt.pattern}).Match(tt.name); got != tt.want {
			t.Errorf("%q matches %q: %t", tt.pattern, tt.name, got)
		}
	}
	nameless := &format.Operator{ID: format.OperatorIDOf("x")}
	slashes := &format.Operator{ID: format.OperatorIDOf("y"), UID: format.NewText("kafka/topic"), Name: format.NewText("Source: kafka/topic")}
	sp := &format.Savepoint{Operators: []*format.Operator{nameless, slashes}}
	for want, n := range map[string]int{"*": 2, "Source*": 1, "kafka*": 1, "*topic": 1} {
		if all, err := (format.Selector{want}).Operators(sp); err != nil || len(all) != n {
			t.Errorf("%q chooses %d operators, %v", want, len(all), err)
		}
	}
}

// A file of 45 KB can hold 20,000 operators, of which edits name all: choosing them
// took time with the square of their number, here hours.
func TestSelectManyOperators(t *testing.T) {
	sp := &format.Savepoint{}
	var ids []format.OperatorID
	for i := range 200_000 {
		op := &format.Operator{ID: format.OperatorID{byte(i >> 16), byte(i >> 8), byte(i)}, Name: format.NewText(fmt.Sprint("name ", i))}
		sp.Operators = append(sp.Operators, op)
		ids = append(ids, op.ID)
	}
	all, err := format.ByID(ids...).Operators(sp)
	if err != nil || len(all) != len(ids) || all[77] != sp.Operators[77] {
		t.Errorf("%d operators, %v", len(all), err)
	}
}

// What names an operator in one way may be the name of another one in another way:
// all of them are chosen.
func TestSelectExactInEveryWay(t *testing.T) {
	id := format.OperatorIDOf("u")
	named := func(id format.OperatorID, uid, name string) *format.Operator {
		return &format.Operator{ID: id, UID: format.NewText(uid), Name: format.NewText(name)}
	}
	sp := &format.Savepoint{Operators: []*format.Operator{
		named(id, "", "one"), named(format.OperatorID{1}, id.String(), ""), named(format.OperatorID{2}, "", "u"),
		named(format.OperatorID{3}, "u", "u"), named(format.OperatorIDOf(id.String()), "", "two"), named(format.OperatorID{4}, "", "a*[b"),
	}}
	for want, places := range map[string][]int{
		"u": {0, 2, 3}, id.String(): {0, 1, 4}, strings.ToUpper(id.String()): {0}, "one": {0}, `a\*\[b`: {5}, id.String()[:6]: {0}, "t*": {4},
	} {
		var expected []*format.Operator
		for _, i := range places {
			expected = append(expected, sp.Operators[i])
		}
		if got, err := (format.Selector{want, want}).Operators(sp); err != nil || !slices.Equal(got, expected) {
			t.Errorf("%q: %d operators, expected %d; %v", want, len(got), len(expected), err)
		}
	}
}
