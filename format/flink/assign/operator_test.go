package assign_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// from makes handles, one a word, of the states in it: "s:abc" is a list state
// s with three elements, "u=x" a union state, "r*" a broadcast state; "-" is no
// handle. Up to 15 handles have names whose hash buckets stand in the order of the
// subtasks: 31 * (15-i) is i+1 modulo 16.
func from(words ...string) (old []*format.OperatorHandle, content []map[string]string) {
	for i, w := range words {
		var h *format.OperatorHandle
		c := map[string]string{}
		if w != "-" {
			h = &format.OperatorHandle{Data: streamOf("inline:" + string(rune(max(15-i, 0))))}
			for _, st := range strings.Split(w, ",") {
				at := strings.IndexAny(st, ":=*")
				name, elements := st[:at], st[at+1:]
				mode := format.Mode(strings.IndexByte(":=*", st[at]))
				if mode == format.ModeBroadcast {
					elements = string(rune('0' + i))
				}
				c[name] = elements
				h.States = append(h.States, named(name, mode, len(elements)))
			}
		}
		old, content = append(old, h), append(content, c)
	}
	return old, content
}

// show writes a plan as "old0 s:ab, r*0; …" per subtask.
func show(plan *assign.Plan, content []map[string]string) []string {
	var out []string
	for _, sub := range plan.Subtasks {
		var pieces []string
		for _, p := range sub.Pieces {
			text := fmt.Sprintf("h%d", p.Old)
			for _, s := range p.Shares {
				text += fmt.Sprintf(" %s%c%s", s.Name, ":=*"[s.Mode], content[p.Old][s.Name][s.First:s.First+s.Count])
			}
			pieces = append(pieces, text)
		}
		out = append(out, strings.Join(pieces, ", "))
	}
	return out
}

// The examples of the spec, B7.
func TestExamples(t *testing.T) {
	old7 := assign.Options{Release: flink.MustRelease("1.7")}
	old13 := assign.Options{Release: flink.MustRelease("1.13")}
	for _, c := range []struct {
		name string
		old  []string
		to   int
		o    assign.Options
		want []string
	}{
		{"1 split", []string{"s:abc", "s:def"}, 3, assign.Options{}, []string{"h0 s:ab", "h0 s:c, h1 s:d", "h1 s:ef"}},
		{"2 the first get more", []string{"s:ab", "s:cd", "s:ef"}, 4, assign.Options{}, []string{"h0 s:ab", "h1 s:cd", "h2 s:e", "h2 s:f"}},
		{
			"3a the start moves on", []string{"a:012,b:01", "a:34,b:23"}, 3, assign.Options{},
			[]string{"h0 a:01, h1 b:2", "h0 a:2, h1 a:3 b:3", "h0 b:01, h1 a:4"},
		},
		{"3b hash order", []string{"alpha:012,zeta:345"}, 4, assign.Options{}, []string{"h0 zeta:3 alpha:1", "h0 zeta:4 alpha:2", "h0 zeta:5", "h0 alpha:0"}},
		{"4 union", []string{"u=xy", "u=z"}, 3, assign.Options{}, []string{"h0 u=xy, h1 u=z", "h0 u=xy, h1 u=z", "h0 u=xy, h1 u=z"}},
		{"4 union, unchanged", []string{"u=xy", "u=z"}, 2, assign.Options{}, []string{"h0 u=xy, h1 u=z", "h0 u=xy, h1 u=z"}},
		{"5a broadcast up", []string{"r*", "r*"}, 4, assign.Options{}, []string{"h0 r*0", "h1 r*1", "h0 r*0", "h1 r*1"}},
		{"5b broadcast down", []string{"r*", "r*", "r*", "r*"}, 2, assign.Options{}, []string{"h0 r*0", "h1 r*1"}},
		{"6a an empty entry on the way", []string{"s:abc", "s:", "s:de"}, 2, assign.Options{}, []string{"h0 s:abc", "h1 s:, h2 s:de"}},
		{"6b unchanged", []string{"s:abc", "s:"}, 2, assign.Options{}, []string{"h0 s:abc", "h1 s:"}},
		{"6c partial broadcast", []string{"r*", "-", "r*"}, 3, assign.Options{}, []string{"h0 r*0", "h2 r*2", "h0 r*0, h2 r*2"}},
		{"6c before 1.14", []string{"r*", "-", "r*"}, 3, old13, []string{"h0 r*0", "", "h2 r*2"}},
		{"6d 1.7, with union state", []string{"s:abc,u=x", "s:d,u=y"}, 2, old7, []string{"h0 s:ab u=x, h1 u=y", "h0 s:c u=x, h1 s:d u=y"}},
		{"6d 1.8 and later", []string{"s:abc,u=x", "s:d,u=y"}, 2, assign.Options{}, []string{"h0 u=x s:abc, h1 u=y", "h0 u=x, h1 u=y s:d"}},
		{"1.7 closes gaps", []string{"-", "s:abc", "s:d"}, 3, old7, []string{"h1 s:abc", "h2 s:d", ""}},
		{"a gap stays", []string{"-", "s:abc", "s:d"}, 3, assign.Options{}, []string{"", "h1 s:abc", "h2 s:d"}},
		{
			"7 all modes", []string{"s:abc,u=x,r*", "s:def,u=y,r*"}, 3, assign.Options{},
			[]string{"h0 s:ab u=x r*0, h1 u=y", "h0 s:c u=x, h1 s:d u=y r*1", "h0 u=x r*0, h1 s:ef u=y"},
		},
		{"nothing", []string{"-", "-"}, 3, assign.Options{}, []string{"", "", ""}},
		{"fewer elements than subtasks", []string{"s:a"}, 3, assign.Options{}, []string{"h0 s:a", "", ""}},
		{"empty states leave no trace", []string{"s:", "s:"}, 3, assign.Options{}, []string{"", "", ""}},
	} {
		old, content := from(c.old...)
		plan, err := assign.Operator(old, c.to, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(plan, content); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
		if plan.Undefined != "" || plan.DependsOnLocation {
			t.Errorf("%s: undefined %q, depends on location %t", c.name, plan.Undefined, plan.DependsOnLocation)
		}
	}
}

// The caveat of example 1: handles named h0 and h1 come the other way round.
func TestOrderOfHandles(t *testing.T) {
	old, content := from("s:abc", "s:def")
	old[0].Data, old[1].Data = streamOf("inline:h0"), streamOf("inline:h1")
	plan, err := assign.Operator(old, 3, assign.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := show(plan, content)[1]; got != "h1 s:d, h0 s:c" {
		t.Error(got)
	}
}

// Two names of one bucket: the one that came later goes first, before 1.6 last.
func TestNamesOfOneBucket(t *testing.T) {
	for release, want := range map[flink.Release]string{
		0:                         "h0 pending:3 alpha:1",
		flink.MustRelease("2.3"):  "h0 pending:3 alpha:1",
		flink.MustRelease("1.6"):  "h0 pending:3 alpha:1",
		flink.MustRelease("1.16"): "h0 pending:3 alpha:1",
		flink.MustRelease("1.5"):  "h0 alpha:0 pending:4",
	} {
		old, content := from("alpha:012,pending:345")
		plan, err := assign.Operator(old, 4, assign.Options{Release: release})
		if err != nil {
			t.Fatal(err)
		}
		if got := show(plan, content)[0]; got != want {
			t.Errorf("%s: %s, want %s", release, got, want)
		}
	}
}

// Where two subtasks refer to one file, what comes of the second replaces what
// came of the first.
func TestEqualHandles(t *testing.T) {
	old, content := from("s:abc,u=xy", "s:def,u=z", "s:g")
	old[1].Data = old[0].Data
	plan, err := assign.Operator(old, 2, assign.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Dealt: s:abc and d to the first, of which d replaces abc; ef and g to the second.
	want := []string{"h1 s:d u=z", "h1 s:ef u=z, h2 s:g"}
	got := show(plan, content)
	if !slices.Equal(got, want) || plan.Subtasks[0].Lost != 3+2 || plan.Subtasks[1].Lost != 2 {
		t.Errorf("%q, lost %d and %d", got, plan.Subtasks[0].Lost, plan.Subtasks[1].Lost)
	}
	if plan.Undefined != "" {
		t.Error(plan.Undefined)
	}
	old[0].Data, old[1].Data = streamOf("absolute:s3://b/f"), streamOf("absolute:S3://B//f")
	if plan, err = assign.Operator(old, 2, assign.Options{}); err != nil || plan.Subtasks[0].Lost != 3+2 {
		t.Errorf("one file, spelled in two ways: %v, lost %d", err, plan.Subtasks[0].Lost)
	}
	old[0].Data = &format.Inline{Name: format.NewText("n"), Data: format.NewBytes([]byte{1})}
	old[1].Data = &format.Inline{Name: format.NewText("n"), Data: format.NewBytes([]byte{2})}
	if plan, err = assign.Operator(old, 2, assign.Options{}); err != nil || plan.Undefined == "" {
		t.Errorf("one name, different bytes: %v, undefined %q", err, plan.Undefined)
	}
}

// Of a name that stands twice in a handle the last counts.
func TestNameTwice(t *testing.T) {
	h := &format.OperatorHandle{States: []format.NamedState{named("s", format.ModeList, 5), named("s", format.ModeUnion, 1)}}
	plan, err := assign.Operator([]*format.OperatorHandle{h}, 2, assign.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := assign.Share{State: 1, Name: "s", Mode: format.ModeUnion, Count: 1}
	for _, sub := range plan.Subtasks {
		if len(sub.Pieces) != 1 || !slices.Equal(sub.Pieces[0].Shares, []assign.Share{want}) {
			t.Errorf("%+v", sub)
		}
	}
}

// What is said of the order.
func TestOrderKnown(t *testing.T) {
	many := make([]string, 200)
	for i := range many {
		many[i] = "u=x"
	}
	collide := func(i int) string { // names of one hash
		var b strings.Builder
		for k := range 8 {
			b.WriteString([]string{"Aa", "BB"}[i>>k&1])
		}
		return b.String()
	}
	for _, c := range []struct {
		name      string
		files     func(i int) string
		old       []string
		at        string
		undefined string
		place     bool
	}{
		{"relative", func(i int) string { return fmt.Sprint("relative:", i) }, []string{"u=x", "u=y"}, "s3://b/sp", "", true},
		{"relative, one handle each", func(i int) string { return fmt.Sprint("relative:", i) }, []string{"s:a", "s:b"}, "s3://b/sp", "", false},
		{"relative, no place", func(i int) string { return fmt.Sprint("relative:", i) }, []string{"u=x", "u=y"}, "", "unknown location", true},
		{"segments", func(i int) string { return fmt.Sprint("segment:", i) }, []string{"u=x", "u=y"}, "", "merged files", false},
		{"segments, one handle each", func(i int) string { return fmt.Sprint("segment:", i) }, []string{"s:a", "s:b"}, "", "", false},
		{"no path", func(i int) string { return fmt.Sprintf("absolute:s3:%d", i) }, []string{"u=x", "u=y"}, "", "relative path in absolute URI", false},
		{"many names of one hash", func(i int) string { return "inline:" + collide(i) }, many, "", "more than eight handles", false},
		{"few names of one hash", func(i int) string { return "inline:" + collide(i) }, many[:10], "", "", false},
	} {
		old, _ := from(c.old...)
		for i, h := range old {
			h.Data = streamOf(c.files(i))
		}
		plan, err := assign.Operator(old, len(old), assign.Options{At: c.at})
		if err != nil {
			t.Fatal(err)
		}
		if c.undefined == "" && plan.Undefined != "" || !strings.Contains(plan.Undefined, c.undefined) || plan.DependsOnLocation != c.place {
			t.Errorf("%s: undefined %q, depends on location %t", c.name, plan.Undefined, plan.DependsOnLocation)
		}
	}
	var words []string
	for i := range 60 {
		words = append(words, collide(i)+":a")
	}
	old, _ := from(strings.Join(words, ","))
	if plan, err := assign.Operator(old, 3, assign.Options{}); err != nil || !strings.Contains(plan.Undefined, "states") {
		t.Errorf("%v, undefined %q", err, plan.Undefined)
	}
}

// The order of an .spt file's streams, and of ones not written yet, is that of
// the handles they stand for.
func TestStreamsOfOurOwn(t *testing.T) {
	old, content := from("u=a", "u=b")
	old[0].Data = &format.Chunks{As: streamOf("inline:h0")}
	old[1].Data = &format.Concat{As: streamOf("inline:h1")}
	plan, err := assign.Operator(old, 1, assign.Options{})
	if err != nil || plan.Undefined != "" || show(plan, content)[0] != "h1 u=b, h0 u=a" {
		t.Errorf("%v, undefined %q, %q", err, plan.Undefined, show(plan, content))
	}
	old[1].Data = &format.Concat{}
	if plan, err = assign.Operator(old, 1, assign.Options{}); err != nil || plan.Undefined == "" {
		t.Errorf("a stream without a name: %v, undefined %q", err, plan.Undefined)
	}
}

func TestOperatorRefuses(t *testing.T) {
	for _, p := range []int{-1, 0, format.MaxKeyGroups + 1} {
		if _, err := assign.Operator(nil, p, assign.Options{}); !errors.Is(err, assign.ErrParallelism) {
			t.Errorf("parallelism %d: %v", p, err)
		}
	}
	bad := &format.OperatorHandle{States: []format.NamedState{named("s", 3, 1)}}
	if _, err := assign.Operator([]*format.OperatorHandle{bad}, 1, assign.Options{}); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("mode 3: %v", err)
	}
	huge := make([]*format.OperatorHandle, 10_000)
	for i := range huge {
		huge[i] = &format.OperatorHandle{Data: streamOf(fmt.Sprint("inline:", i)), States: []format.NamedState{named("u", format.ModeUnion, 1)}}
	}
	if _, err := assign.Operator(huge, 10_000, assign.Options{}); !errors.Is(err, format.ErrLimit) {
		t.Errorf("union of 10,000 for 10,000: %v", err)
	}
}

// TestProperties: what holds of every plan (spec, appendix 2).
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 2000 {
		oldP, newP := 1+r.IntN(12), 1+r.IntN(12)
		if oldP == newP {
			newP++
		}
		names := 1 + r.IntN(16)
		old := make([]*format.OperatorHandle, oldP)
		total := map[string]int64{}
		have := map[string]int{}
		mode := map[string]format.Mode{}
		for k := range names {
			mode[fmt.Sprint("state-", k)] = format.Mode(r.IntN(3))
		}
		for i := range old {
			if r.IntN(9) == 0 {
				continue
			}
			old[i] = &format.OperatorHandle{Data: streamOf(fmt.Sprint("inline:", r.Uint32(), i))}
			for name, m := range mode {
				if r.IntN(9) == 0 {
					continue
				}
				n := r.IntN(7)
				if m == format.ModeBroadcast {
					n = 1
				}
				old[i].States = append(old[i].States, named(name, m, n))
				total[name] += int64(n)
				have[name]++
			}
		}
		plan, err := assign.Operator(old, newP, assign.Options{})
		if err != nil {
			t.Fatal(err)
		}
		type element struct {
			name   string
			old    int
			number int64
		}
		dealt := map[element]int{}
		extras := make([]int64, newP)
		for i, sub := range plan.Subtasks {
			got, copies := map[string]int64{}, map[string]int{}
			seen := map[int]bool{}
			for _, p := range sub.Pieces {
				if seen[p.Old] {
					t.Fatalf("subtask %d has old %d twice", i, p.Old)
				}
				seen[p.Old] = true
				for _, s := range p.Shares {
					if st := old[p.Old].States[s.State]; st.Name.String() != s.Name || st.Mode != s.Mode || s.First < 0 || s.First+s.Count > st.Offsets.Len() {
						t.Fatalf("%+v of %+v", s, st)
					}
					got[s.Name] += s.Count
					copies[s.Name]++
					for k := range s.Count {
						dealt[element{s.Name, p.Old, s.First + k}]++
					}
				}
			}
			for name, m := range mode {
				base := total[name] / int64(newP)
				switch {
				case m == format.ModeList && (got[name] < base || got[name] > base+1):
					t.Fatalf("subtask %d has %d of %d elements", i, got[name], total[name])
				case m == format.ModeList:
					extras[i] += got[name] - base
				case m == format.ModeUnion && (got[name] != total[name] || copies[name] != have[name]):
					t.Fatalf("subtask %d has %d of %d union elements", i, got[name], total[name])
				case m == format.ModeBroadcast && copies[name] != min(have[name], 1):
					t.Fatalf("subtask %d has %d copies of a broadcast state", i, copies[name])
				}
			}
		}
		if slices.Max(extras)-slices.Min(extras) > 1 {
			t.Fatalf("elements more than even: %v", extras)
		}
		for i, h := range old {
			if h == nil {
				continue
			}
			for _, st := range h.States {
				for k := range st.Offsets.Len() {
					want := 1
					if st.Mode == format.ModeUnion {
						want = newP
					}
					if n := dealt[element{st.Name.String(), i, k}]; st.Mode != format.ModeBroadcast && n != want {
						t.Fatalf("%s %q: element %d of old %d dealt %d times", st.Mode, st.Name, k, i, n)
					}
				}
			}
		}
	}
}

// large is oldP subtasks with list states and a union state of n elements each.
func large(oldP, lists, n int) []*format.OperatorHandle {
	old := make([]*format.OperatorHandle, oldP)
	offsets := make(format.OffsetSlice, n)
	for i := range old {
		old[i] = &format.OperatorHandle{Data: streamOf(fmt.Sprintf("absolute:s3://bucket/jobs/sp/%08x", i*0x9e3779b1))}
		for k := range lists {
			old[i].States = append(old[i].States, format.NamedState{Name: format.NewText(fmt.Sprint("state-", k)), Offsets: offsets})
		}
		old[i].States = append(old[i].States, format.NamedState{Name: format.NewText("union"), Mode: format.ModeUnion, Offsets: offsets})
	}
	return old
}

// counted is offsets of any number of elements; the calls of Len are counted, and
// nothing else may be asked.
type counted struct {
	n     int64
	calls *int
}

func (c counted) Len() int64 { *c.calls++; return c.n }

func (c counted) Read(context.Context, []int64, int64) (int, error) {
	panic("a plan does not need offsets")
}

// TestLarge: what planning costs follows from the numbers of handles and states,
// not from the number of elements. With a loop over these it would not end.
func TestLarge(t *testing.T) {
	const oldP, newP, lists = 100, 200, 10
	cost := func(n int64) (calls int, allocs float64) {
		old := large(oldP, lists, 1)
		for _, h := range old {
			for i := range h.States {
				h.States[i].Offsets = counted{n, &calls}
			}
		}
		allocs = testing.AllocsPerRun(1, func() {
			if _, err := assign.Operator(old, newP, assign.Options{}); err != nil {
				t.Fatal(err)
			}
		})
		return calls, allocs
	}
	fewCalls, fewAllocs := cost(10_000)
	manyCalls, manyAllocs := cost(1 << 40)
	t.Logf("%d subtasks to %d: %d calls of Len and %.0f allocations; with 1<<40 elements a state %d and %.0f", oldP, newP, fewCalls, fewAllocs, manyCalls, manyAllocs)
	if most := 2 * 2 * oldP * (lists + 1); manyCalls != fewCalls || manyCalls > most { // two runs
		t.Errorf("%d and %d calls of Len, expected at most %d and the same number", fewCalls, manyCalls, most)
	}
	if most := 1.2*fewAllocs + 1000; manyAllocs > most {
		t.Errorf("%.0f allocations, expected at most %.0f", manyAllocs, most)
	}
}

func BenchmarkOperator(b *testing.B) {
	for _, c := range []struct{ from, lists, to int }{{100, 10, 200}, {1000, 3, 1000}, {1000, 3, 2000}} {
		old := large(c.from, c.lists, 10_000)
		b.Run(fmt.Sprintf("%d-%d", c.from, c.to), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := assign.Operator(old, c.to, assign.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
