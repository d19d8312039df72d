package transform

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/hash128"
)

func TestFieldPaths(t *testing.T) {
	v := value.Record(&value.Shape{Names: []string{"split", "value"}}, []value.Value{
		value.List([]value.Value{value.Int(1), value.Map([]value.Value{value.String("k"), value.Int(2), value.Int(3), value.Int(4)})}), value.Int(5),
	})
	for _, x := range []struct {
		text  string
		steps []string
		want  string // "": it has no such field
	}{
		{"split[0]", []string{"split", "0"}, "1"}, {"value.split[0]", []string{"split", "0"}, "1"}, {".split.0", []string{"split", "0"}, "1"}, {"split[1].k", []string{"split", "1", "k"}, "2"},
		{"value.value", []string{"value"}, "5"}, {"values", []string{"values"}, ""}, {"split[2]", []string{"split", "2"}, ""}, {"split[1].z", []string{"split", "1", "z"}, ""}, {"value[0]", []string{"0"}, ""}, {"split.-1", []string{"split", "-1"}, ""},
	} {
		p, err := parseField(x.text)
		if err != nil || !slices.Equal(p.steps, x.steps) {
			t.Errorf("%s: %q, %v", x.text, p.steps, err)
			continue
		}
		got, err := p.of(v)
		if x.want == "" && err == nil || x.want != "" && (err != nil || got.String() != x.want) {
			t.Errorf("%s: %v, %v", x.text, got, err)
		}
	}
	if p, err := parseField("value"); err != nil || len(p.steps) > 0 {
		t.Errorf("%q, %v", p.steps, err)
	}
	for _, text := range []string{"a..b", "a.", "[", "[x]", "[-1]", "a[01]", "value[1", "."} {
		if _, err := parseField(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestCompareValues(t *testing.T) {
	ascending := [][]value.Value{
		{value.Null(), value.Int(-5), value.Int(7), value.Uint(math.MaxInt64 + 1), value.Uint(math.MaxUint64)},
		{value.Null(), value.Float64(math.Float64bits(-1.5)), value.Float64(math.Float64bits(2))},
		{value.Null(), value.String("a"), value.String("b")},
		{value.Instant(1, 5), value.Instant(1, 6), value.Instant(2, 0)},
	}
	for _, all := range ascending {
		for i, a := range all {
			for k, b := range all {
				c, err := compareValues(a, b)
				if err != nil || (c < 0) != (i < k) || (c > 0) != (i > k) {
					t.Errorf("%v and %v: %d, %v", a, b, c, err)
				}
			}
		}
	}
	for _, x := range [][2]value.Value{{value.Int(1), value.String("a")}, {value.Uint(math.MaxUint64), value.String("a")}, {value.List(nil), value.List(nil)}, {value.Float64(0x7ff8000000000000), value.Float64(0)}} {
		if c, err := compareValues(x[0], x[1]); err == nil {
			t.Errorf("%v and %v: %d", x[0], x[1], c)
		}
	}
}

// TestIdentitiesAreBounded: what is held of elements has limits, and only the
// value that replaced another is counted.
func TestIdentitiesAreBounded(t *testing.T) {
	long := func(first string) *value.Value {
		v := value.String(first + strings.Repeat("x", maxTexts/2))
		return &v
	}
	all := identities{places: map[hash128.Digest]int32{}}
	hash := hash128.New()
	one, two, three := hash.Sum([]byte("1")), hash.Sum([]byte("2")), hash.Sum([]byte("3"))
	for i, first := range []string{"a", "b", "c", "c", "b"} {
		if err := all.add(one, best{int64(i), 1}, long(first)); err != nil {
			t.Fatal(err)
		}
	}
	short := value.String("short")
	if err := all.add(two, best{5, 1}, &short); err != nil || len(all.kept) != 2 || all.kept[0].number != 2 || all.kept[1].number != 5 {
		t.Errorf("%+v, %v", all.kept, err)
	}
	if err := all.add(three, best{6, 1}, long("a")); !errors.Is(err, format.ErrLimit) {
		t.Error(err)
	}
	full := identities{places: map[hash128.Digest]int32{one: 0}, kept: make([]best, maxIdentities)}
	if err := full.add(one, best{7, 1}, nil); err != nil || full.kept[0].number != 7 {
		t.Error(full.kept[0], err)
	}
	if err := full.add(two, best{8, 1}, nil); !errors.Is(err, format.ErrLimit) {
		t.Error(err)
	}
}
