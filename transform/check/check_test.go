package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// codes is what a report found, in words: "error no-taker a".
func codes(r *Report) []string {
	all := []string{}
	for _, f := range r.Findings {
		s := string(f.Severity) + " " + f.Code
		switch {
		case f.Operator != nil:
			s += " " + f.Operator.Label()
		case f.UID != "":
			s += " " + f.UID
		}
		if f.State != "" {
			s += "/" + f.State
		}
		all = append(all, s)
	}
	return all
}

func TestCheckFindings(t *testing.T) {
	kept := func(op *format.Operator, f func(*format.Operator)) *format.Operator { f(op); return op }
	union := func(elems ...string) st { return st{"u", format.ModeUnion, elems} }
	broadcast := func(elems ...string) st { return st{"b", format.ModeBroadcast, elems} }
	// What is about modes alone is of no codec: native state would say so too.
	handle := func(name string, states ...st) *format.OperatorHandle {
		h := nativeHandle(name, states...)
		h.Codec = format.CodecRaw
		return h
	}
	nativeSavepoint := func(in *format.View) {
		in.Kind = format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatNative}
	}
	release := func(major, minor int) Options {
		return Options{Release: flink.MustRelease(fmt.Sprintf("%d.%d", major, minor))}
	}
	for _, tt := range []struct {
		name   string
		ops    []*format.Operator
		change func(*format.View)
		o      Options
		want   []string
	}{
		{"nothing", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{}, nil},
		{"all known", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{Job: JobOfNames([]string{"a"})}, nil},
		{"by id", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{Job: JobOfNames([]string{format.OperatorIDOf("a").String()})}, nil},
		{"no taker", []*format.Operator{sptest.ListOperator("a", 2), sptest.ListOperator("b", 2)}, nil, Options{Job: JobOfNames([]string{"b", "c"})},
			[]string{"error no-taker a", "note starts-empty c"}},
		{"no taker, allowed", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{Job: JobOfNames([]string{"b"}), AllowNonRestored: true},
			[]string{"warning no-taker a", "note starts-empty b"}},
		{"no taker, a coordinator alone", []*format.Operator{kept(sptest.Operator("a", nil), func(o *format.Operator) { o.Coordinator = sptest.Inline("c", "x") })}, nil, Options{Job: JobOfNames([]string{"b"})},
			[]string{"error no-taker a", "note starts-empty b"}},
		{"no taker, no state", []*format.Operator{sptest.Operator("a", nil)}, nil, Options{Job: JobOfNames([]string{"b"})},
			[]string{"note not-in-job a", "note starts-empty b"}},
		{"what nobody takes is not looked at", []*format.Operator{sptest.Operator("a", nativeHandle("1", union("x")))}, nil, Options{Job: JobOfNames([]string{"b"}), Parallelism: 200},
			[]string{"error no-taker a", "note starts-empty b"}},
		{"parallelism at the limit", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{Parallelism: 128}, []string{"note subtasks-without-state a/l"}},
		{"parallelism above it", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{Parallelism: 129}, []string{"error parallelism a"}},
		{"parallelism of an operator without state", []*format.Operator{sptest.Operator("a", nil)}, nil, Options{Parallelism: 129}, []string{"error parallelism a"}},
		{"parallelism of an operator without subtasks", []*format.Operator{sptest.Operator("a")}, nil, Options{Parallelism: 129}, nil},
		{"max parallelism", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{MaxParallelism: 128}, nil},
		{"another max parallelism", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{MaxParallelism: 256}, []string{"error max-parallelism a"}},
		{"another max parallelism, no state", []*format.Operator{sptest.Operator("a", nil)}, nil, Options{MaxParallelism: 64}, []string{"error max-parallelism a"}},
		{"another max parallelism, no state, perhaps not in the job", []*format.Operator{sptest.Operator("a", nil)}, nil, Options{MaxParallelism: 64, Job: &Job{Operators: JobOfNames([]string{"b"}).Operators}}, []string{"warning max-parallelism a", "note starts-empty b"}},
		{"another max parallelism, no state, not in the job", []*format.Operator{sptest.Operator("a", nil)}, nil, Options{MaxParallelism: 64, Job: JobOfNames([]string{"b"})}, []string{"note not-in-job a", "note starts-empty b"}},
		{"a max parallelism below", []*format.Operator{sptest.ListOperator("a", 2)}, nil, Options{MaxParallelism: 1}, []string{"error parallelism a", "error max-parallelism a"}},
		{"union", []*format.Operator{sptest.Operator("a", handle("1", union("x")), handle("2", union("long")))}, nil, Options{}, []string{"note union a/u"}},
		{"union, one subtask", []*format.Operator{sptest.Operator("a", handle("1", union("x")), handle("2", union("long")))}, nil, Options{Parallelism: 1}, nil},
		{"union, multiplied", []*format.Operator{sptest.Operator("a", handle("1", union("x", "y")), handle("2", union("x", "y")))}, nil, Options{}, []string{"warning union-multiplied a/u"}},
		{"union, alike in length only", []*format.Operator{sptest.Operator("a", handle("1", union("x", "y")), handle("2", union("z", "w")))}, nil, Options{}, []string{"note union a/u"}},
		{"broadcast, alike", []*format.Operator{sptest.Operator("a", handle("1", broadcast("x")), handle("2", broadcast("x")))}, nil, Options{}, nil},
		{"broadcast, different", []*format.Operator{sptest.Operator("a", handle("1", broadcast("x")), handle("2", broadcast("xy")))}, nil, Options{}, []string{"warning broadcast-differs a/b"}},
		{"broadcast, not everywhere", []*format.Operator{sptest.Operator("a", handle("1", broadcast("x")), nil)}, nil, Options{}, []string{"note broadcast-partial a/b"}},
		{"native", []*format.Operator{sptest.Operator("a", nativeHandle("1", broadcast("x")))}, nil, Options{}, []string{"error not-flink a"}},
		{"finished", []*format.Operator{kept(sptest.Operator("a"), func(o *format.Operator) { o.Parallelism, o.Finished = 2, true })}, nil, Options{}, []string{"note finished a"}},
		{"partly finished", []*format.Operator{kept(sptest.ListOperator("a", 2), func(o *format.Operator) { o.Subtasks[1] = &format.Subtask{Index: 1, Finished: true} })}, nil, Options{}, []string{"note partly-finished a"}},
		{"finished, an older release", []*format.Operator{kept(sptest.Operator("a"), func(o *format.Operator) { o.Parallelism, o.Finished = 2, true })}, nil, release(1, 13), []string{"error release a", "note finished a"}},
		{"in flight, the same", []*format.Operator{kept(sptest.ListOperator("a", 2), func(o *format.Operator) {
			o.Subtasks[0].Input = []*format.ChannelHandle{{Data: sptest.Inline("c", "x")}}
		})}, nil, Options{}, nil},
		{"in flight, another", []*format.Operator{kept(sptest.ListOperator("a", 2), func(o *format.Operator) {
			o.Subtasks[0].Input = []*format.ChannelHandle{{Data: sptest.Inline("c", "x")}}
		})}, nil, Options{Parallelism: 3}, []string{"warning in-flight a", "note subtasks-without-state a/l"}},
		{"block order", []*format.Operator{kept(sptest.ListOperator("a", 2), func(o *format.Operator) {
			for i, s := range o.Subtasks {
				s.Managed.Codec = format.CodecRaw // no bytes that say which version it is
				s.Managed.Data = &format.File{Path: format.NewText(fmt.Sprint("f", i)), Relative: true, Length: 9}
			}
		})}, nil, Options{Parallelism: 1}, []string{"note block-order a"}},
		{"block order of too many", []*format.Operator{kept(sptest.ListOperator("a", 1500), func(o *format.Operator) { o.MaxParallelism = 32768 })}, nil, Options{Parallelism: 1500}, []string{"note order-not-checked a"}},
		{"shared, relative", []*format.Operator{sptest.IncrementalOperator("a", &format.Incremental{Meta: sptest.Versioned(6, ""), Shared: []format.NamedStream{{Data: &format.File{Path: format.NewText("f"), Relative: true}}}})}, nil, Options{}, []string{"warning claim a"}},
		{"shared, absolute", []*format.Operator{sptest.IncrementalOperator("a", &format.Incremental{Meta: sptest.Versioned(6, ""), Shared: []format.NamedStream{{Data: &format.File{Path: format.NewText("/f")}}}})}, nil, Options{}, nil},
		{"native savepoint without timers", []*format.Operator{sptest.IncrementalOperator("a", &format.Incremental{Meta: sptest.Versioned(6, "")})}, nativeSavepoint, Options{Schema: schemas("long", sptest.KeyedSchema("v", "value", "Long"))}, []string{"note no-timers a"}},
		{"native savepoint with timers", []*format.Operator{sptest.IncrementalOperator("a", &format.Incremental{Meta: sptest.Versioned(6, "")})}, nativeSavepoint, Options{Schema: schemas("long", sptest.KeyedSchema("t", types.Timers, "Timer"))}, nil},
		{"native savepoint, timers not told", []*format.Operator{sptest.IncrementalOperator("a", &format.Incremental{Meta: sptest.Versioned(6, "")})}, nativeSavepoint, Options{Schema: undescribed(format.ErrUnsupported)}, []string{"note types-not-checked a", "note timers-not-checked a"}},
		{"old _metadata", nil, nil, Options{Metadata: 6, Release: flink.MustRelease("2.1")}, nil},
		{"new _metadata", nil, nil, Options{Metadata: 6, Release: flink.MustRelease("2.0")}, []string{"error release"}},
		{"operator state too new", []*format.Operator{sptest.ListOperator("a", 2)}, nil, release(1, 17), []string{"error release a"}},
		{"operator state just right", []*format.Operator{sptest.ListOperator("a", 2)}, nil, release(1, 18), nil},
		{"operator state too old", []*format.Operator{kept(sptest.ListOperator("a", 1), func(o *format.Operator) { o.Subtasks[0].Managed.Data = sptest.Versioned(4, "....a") })}, nil, release(1, 17), []string{"error release a"}},
		{"operator state old", []*format.Operator{kept(sptest.ListOperator("a", 1), func(o *format.Operator) { o.Subtasks[0].Managed.Data = sptest.Versioned(4, "....a") })}, nil, release(1, 16), nil},
		{"operator state old, no release", []*format.Operator{kept(sptest.ListOperator("a", 1), func(o *format.Operator) { o.Subtasks[0].Managed.Data = sptest.Versioned(4, "....a") })}, nil, Options{}, []string{"warning old-state a"}},
		{"operator state of a version nobody knows", []*format.Operator{kept(sptest.ListOperator("a", 1), func(o *format.Operator) { o.Subtasks[0].Managed.Data = sptest.Versioned(99, "....a") })}, nil, Options{}, []string{"warning not-checked a"}},
		{"keyed state too old", []*format.Operator{sptest.IncrementalOperator("a", &format.Incremental{Meta: sptest.Versioned(5, "")})}, nil, release(1, 20), []string{"error release a"}},
		{"changelog", []*format.Operator{kept(sptest.Operator("a", nil), func(o *format.Operator) {
			o.Subtasks[0].ManagedKeyed = &format.Changelog{Range: format.KeyGroupRange{Count: 128}, Materialized: []format.KeyedHandle{nil, &format.KeyGroups{Codec: format.CodecFlink, Savepoint: true, Range: format.KeyGroupRange{Count: 128}, Data: sptest.Versioned(6, "")}}}
		})}, nil, release(1, 12), []string{"error release a", "error release a"}},
		{"merged files", []*format.Operator{kept(sptest.ListOperator("a", 1), func(o *format.Operator) { o.Subtasks[0].Managed.Merging = &format.FileMerging{} })}, nil, release(1, 19), []string{"error release a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := sptest.View(tt.ops...)
			in.Location = "file:/x"
			if tt.change != nil {
				tt.change(&in)
			}
			r, err := Run(t.Context(), in, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(append([]string{}, tt.want...), codes(r)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// schemas says the same of every operator.
func schemas(key string, states ...types.StateSchema) types.Schemas {
	return func(context.Context, *format.Operator) (types.Schema, []error, error) {
		return types.Schema{Key: sptest.Serializer(key), States: states}, nil, nil
	}
}

// undescribed is operators of which nothing can be told.
func undescribed(err error) types.Schemas {
	return func(context.Context, *format.Operator) (types.Schema, []error, error) {
		return types.Schema{}, []error{err, err}, nil
	}
}

// TestCheckTypes compares states with those of the job, and with what releases
// have.
func TestCheckTypes(t *testing.T) {
	kryo := sptest.Serializer(kryoSnapshot)
	kryo.Type = "java.util.ArrayList"
	list := types.StateSchema{Name: format.NewText("l"), Serializers: []types.Serializer{{Key: "VALUE_SERIALIZER", Snapshot: &types.Snapshot{Class: "org.apache.flink.api.common.typeutils.base.ListSerializerSnapshot", Nested: []*types.Snapshot{kryo, nil}}}}}
	ttl := &types.Snapshot{Class: "org.apache.flink.runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot", Raw: []byte("ttl"), Nested: []*types.Snapshot{sptest.Serializer("Long"), sptest.Serializer("String")}}
	withTTL := types.StateSchema{Name: format.NewText("k"), Keyed: "value", Serializers: []types.Serializer{{Key: "VALUE_SERIALIZER", Snapshot: ttl}}}
	old := sptest.Serializer("Long")
	old.Old = true
	release := func(major, minor int, metadata int32, s types.Schemas) Options {
		return Options{Release: flink.MustRelease(fmt.Sprintf("%d.%d", major, minor)), Metadata: metadata, Schema: s}
	}
	like := func(was, now types.Schemas) Options {
		return Options{Schema: was, Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("a", 1)}}, Schema: now}}
	}
	for _, tt := range []struct {
		name string
		o    Options
		want []string
		text string // in what was found
	}{
		{"the same", like(schemas("Long", sptest.StateSchema("l", 0, "Long")), schemas("Long", sptest.StateSchema("l", 0, "Long"))), nil, ""},
		{"keys", like(schemas("Long"), schemas("String")), []string{"error type a"}, "its keys are of another type in the job: LongSerializer → StringSerializer"},
		{"values", like(schemas("", sptest.StateSchema("l", 0, "Long")), schemas("", sptest.StateSchema("l", 0, "Int"))), []string{"error type a/l"}, "its values are of another type in the job: LongSerializer → IntSerializer"},
		{"mode", like(schemas("", sptest.StateSchema("l", format.ModeList, "Long")), schemas("", sptest.StateSchema("l", format.ModeUnion, "Long"))), []string{"error state-kind a/l"}, "it is list state, and the job registers union state"},
		{"kind", like(schemas("", sptest.KeyedSchema("k", "value", "Long")), schemas("", sptest.KeyedSchema("k", "list", "Long"))), []string{"error state-kind a/k"}, ""},
		{"broadcast is another name", like(schemas("", sptest.StateSchema("l", format.ModeList, "Long")), schemas("", sptest.StateSchema("l", format.ModeBroadcast, "Long"))), []string{"warning all-state-unread a"}, "the job registers none of its states (\"l\"), and the states that it registers start empty ("},
		{"keyed is another name", like(schemas("", sptest.StateSchema("l", format.ModeList, "Long")), schemas("", sptest.KeyedSchema("l", "list", "Long"))), []string{"warning all-state-unread a"}, "the job registers none of its states (\"l\"), and the states that it registers start empty ("},
		{"renamed", like(schemas("", sptest.StateSchema("l", 0, "Long")), schemas("", sptest.StateSchema("m", 0, "Long"))), []string{"warning all-state-unread a"}, "the job registers none of its states (\"l\"), and the states that it registers start empty ("},
		{"timers", like(schemas("", sptest.KeyedSchema("t", types.Timers, "Long")), schemas("", sptest.KeyedSchema("t", types.Timers, "Int"))), []string{"error type a/t"}, "its timers are of another type"},
		{"time to live", like(schemas("", withTTL), schemas("", sptest.KeyedSchema("k", "value", "String"))), []string{"warning type-unsure a/k"}, "time to live was switched off"},
		{"not described", like(undescribed(format.ErrUnsupported), schemas("", sptest.StateSchema("l", 0, "Long"))), []string{"note types-not-checked a"}, ""},
		{"the job's not described", like(schemas("", sptest.StateSchema("l", 0, "Long")), undescribed(format.ErrUnsupported)), []string{"warning types-not-checked a"}, ""},
		{"not readable", like(undescribed(format.ErrCorrupt), schemas("")), []string{"error unreadable a"}, ""},
		{"not there", like(undescribed(format.ErrMissing), schemas("")), nil, ""},
		{"another operator", Options{Schema: schemas(""), Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("b", 1)}}, Schema: schemas("")}}, []string{"error no-taker a", "note starts-empty b"}, ""},
		{"names before a snapshot", Options{Schema: schemas(""), Job: JobOfNames([]string{"a"}), Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("b", 1)}}, Schema: schemas("")}}, nil, ""},

		{"Kryo 2 into Flink 2", release(2, 0, 4, schemas("", list)), []string{"error release a"}, `it has state "l" with values of java.util.ArrayList written by Kryo, which Flink 2.0 cannot read: 1.20 is the last that can; Flink 2 has Kryo 5`},
		{"Kryo 2 into Flink 1", release(1, 20, 4, schemas("", list)), nil, ""},
		{"Kryo 2 into no release", Options{Metadata: 4, Schema: schemas("", list)}, []string{"note old-state a"}, ""},
		{"Kryo 2 into a job like one of Flink 2", Options{Metadata: 4, Schema: schemas("", list), Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("a", 1)}}, Schema: schemas("", list), Metadata: 5}}, []string{"error release a"}, "which Flink 2.0 cannot read"},
		{"Kryo 2 into a job like one of Flink 1", Options{Metadata: 3, Schema: schemas("", list), Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("a", 1)}}, Schema: schemas("", list), Metadata: 4}}, nil, ""},
		{"Kryo 5 into Flink 2", release(2, 3, 5, schemas("", list)), nil, ""},
		{"Kryo of an unknown writer", release(2, 3, 0, schemas("", list)), nil, ""},
		{"Scala into 2.0", release(2, 0, 4, schemas("org.apache.flink.api.scala.typeutils.ScalaCaseClassSerializerSnapshot")), []string{"error release a"}, "keys serialized by org.apache.flink.api.scala.typeutils.ScalaCaseClassSerializerSnapshot, which Flink 2.0 cannot read: 1.20 is the last that can"},
		{"Scala into 1.20", release(1, 20, 4, schemas("org.apache.flink.api.scala.typeutils.ScalaCaseClassSerializerSnapshot")), nil, ""},
		{"Scala of SQL into 2.0", release(2, 0, 5, schemas("org.apache.flink.table.api.typeutils.ScalaCaseClassSerializerSnapshot")), nil, ""},
		{"a set into 1.20", release(1, 20, 4, schemas("", sptest.StateSchema("l", 0, "Set"))), []string{"error release a"}, "2.0 is the first that can"},
		{"SQL of 2.2 into 2.1", release(2, 1, 6, schemas("", sptest.KeyedSchema("k", "map", "org.apache.flink.table.runtime.sequencedmultisetstate.linked.NodeSerializer$NodeSerializerSnapshot"))), []string{"error release a"}, ""},
		{"a description of old into 1.17", release(1, 17, 4, func(context.Context, *format.Operator) (types.Schema, []error, error) {
			return types.Schema{Key: old}, nil, nil
		}), []string{"error release a"}, "a serializer snapshot of keys from before Flink 1.7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			op := sptest.ListOperator("a", 1)
			op.Subtasks[0].Managed.Data = &format.Inline{} // of no version
			if tt.o.Job != nil || tt.o.Like != nil {
				op = sptest.ListOperator("a", 1)
			}
			r, err := Run(t.Context(), sptest.View(op), tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(append([]string{}, tt.want...), codes(r)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if len(r.Findings) > 0 && !strings.Contains(r.Findings[0].Message, tt.text) {
				t.Errorf("%q, not %q", r.Findings[0].Message, tt.text)
			}
		})
	}
}

// TestTypesFor: what a release has no serializer for is refused, with its place.
func TestTypesFor(t *testing.T) {
	set, long := schemas("", sptest.StateSchema("l", 0, "Set")), schemas("", sptest.StateSchema("l", 0, "Long"))
	sp := sptest.View(sptest.Operator("a")).Savepoint
	release := func(major, minor int) flink.Release { return flink.MustRelease(fmt.Sprintf("%d.%d", major, minor)) }
	if unread, err := TypesFor(t.Context(), sp, set, 6, release(2, 0)); err != nil || len(unread) > 0 {
		t.Error(err)
	}
	if _, err := TypesFor(t.Context(), sp, long, 6, release(1, 3)); err != nil {
		t.Error(err)
	}
	_, err := TypesFor(t.Context(), sp, set, 6, release(1, 20))
	if !errors.Is(err, format.ErrUnsupported) || !strings.HasPrefix(err.Error(), `operator "a": state "l" serialized by `) || !strings.HasSuffix(err.Error(), "which Flink 1.20 cannot read: 2.0 is the first that can") {
		t.Error(err)
	}
	if unread, err := TypesFor(t.Context(), sp, undescribed(format.ErrUnsupported), 6, release(2, 0)); err != nil || len(unread) != 2 {
		t.Errorf("%v, %v", unread, err)
	}
	kryo := schemas("", sptest.StateSchema("l", 0, kryoSnapshot))
	for _, x := range []struct {
		metadata int32
		r        flink.Release
		refused  bool
	}{{4, release(1, 16), false}, {4, release(2, 0), true}, {5, release(2, 3), false}, {5, release(1, 20), true}, {0, release(2, 0), false}} {
		if _, err := TypesFor(t.Context(), sp, kryo, x.metadata, x.r); errors.Is(err, format.ErrUnsupported) != x.refused {
			t.Errorf("Kryo of metadata %d for %v: %v", x.metadata, x.r, err)
		}
	}
}

// TestCheckTypeAdvice: a state can get another name; keys have none, and timers
// and namespaces are Flink's.
func TestCheckTypeAdvice(t *testing.T) {
	inWindows := sptest.KeyedSchema("k", "value", "Long")
	inWindows.Serializers = []types.Serializer{inWindows.Serializers[0], {Key: "NAMESPACE_SERIALIZER", Snapshot: sptest.Serializer("Int")}}
	for _, tt := range []struct {
		name     string
		was, now types.Schemas
		renames  bool
	}{
		{"values", schemas("", sptest.KeyedSchema("k", "value", "Long")), schemas("", sptest.KeyedSchema("k", "value", "Int")), true},
		{"elements", schemas("", sptest.StateSchema("l", 0, "Long")), schemas("", sptest.StateSchema("l", 0, "Int")), true},
		{"keys", schemas("Long"), schemas("Int"), false},
		{"timers", schemas("", sptest.KeyedSchema("t", types.Timers, "Long")), schemas("", sptest.KeyedSchema("t", types.Timers, "Int")), false},
		{"namespaces", schemas("", sptest.KeyedSchema("k", "value", "Long")), schemas("", inWindows), false},
	} {
		r, err := Run(t.Context(), sptest.View(sptest.ListOperator("a", 1)), Options{Schema: tt.was, Like: &Like{Savepoint: &format.Savepoint{Operators: []*format.Operator{sptest.ListOperator("a", 1)}}, Schema: tt.now}})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Code != "type" {
			t.Errorf("%s: %v", tt.name, codes(r))
			continue
		}
		advice := fmt.Sprint(r.Findings[0].Advice)
		if strings.Contains(advice, "another name") != tt.renames || strings.Contains(advice, "(drop-operator a)") == tt.renames {
			t.Errorf("%s: %s", tt.name, advice)
		}
	}
}

// TestCheckCorpus: no snapshot has what the release that wrote it cannot read, and
// the types of each fit itself.
func TestCheckCorpus(t *testing.T) {
	labelled, states, stored := 0, 0, false
	label := regexp.MustCompile(`flink([12]\.[0-9]+)|/([12]\.[0-9]+)-`)
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		o := Options{Metadata: snap.Container.Metadata, Schema: snap.Schema, Like: &Like{Savepoint: snap.Savepoint, Schema: snap.Schema, Metadata: snap.Container.Metadata}}
		if m := label.FindStringSubmatch(dir); m != nil {
			var err error
			if o.Release, err = flink.ParseRelease(m[1] + m[2]); err != nil {
				t.Fatal(err)
			}
			labelled++
		}
		r, err := Run(t.Context(), snap.View(), o)
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, f := range r.Findings {
			switch f.Code {
			case "release", "type", "type-migrates", "state-kind", "state-not-asked", "state-starts-empty", "no-taker", "starts-empty", "unreadable":
				t.Errorf("%s: %s %s %s: %s", dir, f.Severity, f.Code, f.State, f.Message)
			}
		}
		for _, op := range snap.Operators {
			s, _, err := snap.Schema(t.Context(), op)
			if err != nil {
				t.Fatal(err)
			}
			states += len(s.States)
			stored = stored || slices.ContainsFunc(op.Subtasks, func(s *format.Subtask) bool { return s.Managed != nil && len(s.Managed.States) > 0 })
		}
	}
	t.Logf("%d snapshots of a known release, %d states", labelled, states)
	testenv.Some(t, "snapshots of a known release", labelled, labelled > 0)
	testenv.Some(t, "states with a schema", states, stored)
}

// TestCheckPlan: a plan knows vertices only, by the ids of their first operators.
func TestCheckPlan(t *testing.T) {
	id := func(uid string) string { return format.OperatorIDOf(uid).String() }
	text := fmt.Sprintf(`{"jid":"0","name":"n","plan":{"jid":"0","name":"n","type":"STREAMING","nodes":[
		{"id":%q,"parallelism":3,"operator":"","description":"Source: a -&gt; chained<br/>"},
		{"id":%q,"parallelism":5,"description":"new"}]}}`, id("a"), id("new"))
	plan, err := ParsePlan([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	chained := sptest.ListOperator("c", 2)
	chained.Name = format.NewText("chained")
	in := sptest.View(sptest.ListOperator("a", 2), chained, sptest.ListOperator("b", 2), sptest.Operator("e", nil))
	r, err := Run(t.Context(), in, Options{Job: plan})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"warning not-in-plan b", "note chained c", "note starts-empty new", "note subtasks-without-state a/l", "note subtasks-without-state c/l"}, codes(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(r.Matched) != 1 || r.Matched[0].To != 3 || r.Matched[0].Name != "Source: a -> chained" {
		t.Errorf("matched %+v", r.Matched)
	}
	if len(r.Restored) != 4 {
		t.Errorf("%d operators restored", len(r.Restored))
	}
	// With names, the plan adds parallelisms, and what has neither has no taker.
	r, err = Run(t.Context(), in, Options{Job: JobOfNames([]string{"a", "c"}).WithPlan(plan)})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"error no-taker b", "note not-in-job e", "note starts-empty new", "note subtasks-without-state a/l"}, codes(r)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(r.Matched) != 2 || r.Matched[0].To != 3 || r.Matched[1].To != 2 {
		t.Errorf("matched %+v", r.Matched)
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"plan":{"nodes":[]}}`, `{"plan":{"nodes":[{"id":"xy"}]}}`,
		`{"nodes":[{"id":"` + id("a") + `","parallelism":-1}]}`, `{"nodes":[{"id":"` + id("a") + `"},{"id":"` + id("a") + `"}]}`} {
		if _, err := ParsePlan([]byte(bad)); err == nil {
			t.Errorf("%s is a plan", bad)
		}
	}
	if bare, err := ParsePlan([]byte(`{"nodes":[{"id":"` + id("a") + `","parallelism":4}]}`)); err != nil || bare.Operators[0].Parallelism != 4 {
		t.Errorf("a bare plan: %+v, %v", bare, err)
	}
}

// TestCheckPlanByName: that a name stands in a chain is no proof that an operator
// without state is in the job, and of two chains none tells the parallelism.
func TestCheckPlanByName(t *testing.T) {
	sink := &format.Operator{ID: format.OperatorIDOf("sink"), Name: format.NewText("Sink: Writer"), Parallelism: 2, MaxParallelism: 128, Subtasks: []*format.Subtask{{Index: 0}, {Index: 1}}}
	node := func(uid string, parallelism int) string {
		return fmt.Sprintf(`{"id":%q,"parallelism":%d,"description":"%s -&gt; Sink: Writer"}`, format.OperatorIDOf(uid), parallelism, uid)
	}
	for _, tt := range []struct {
		nodes []string
		want  []string
	}{
		{[]string{node("x", 200)}, []string{"warning parallelism Sink: Writer", "note starts-empty x -> Sink: Writer"}},
		{[]string{node("x", 200), node("y", 3)}, []string{"note starts-empty x -> Sink: Writer", "note starts-empty y -> Sink: Writer"}},
	} {
		plan, err := ParsePlan([]byte(`{"nodes":[` + strings.Join(tt.nodes, ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), sptest.View(sink), Options{Job: plan})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tt.want, codes(r)); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
}

// TestChained: the names in descriptions as Flink writes them for a plan.
func TestChained(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"<br/>", nil},
		{"FlatMap", []string{"FlatMap"}},
		{"Source: numbers -&gt; other-rules-v2 -&gt; namelessness", []string{"Source: numbers", "other-rules-v2", "namelessness"}},
		{"Source: a -&gt; b<br/>", []string{"Source: a", "b"}},
		{"a -&gt; (b, c)", []string{"a", "b", "c"}},
		{"a -&gt; (b -&gt; (c , d) , e -&gt; f)", []string{"a", "b", "c", "d", "e", "f"}},
		{"a -&gt; (Calc(select=[x, y]), Map (at main(Job.java:3)))", []string{"a", "Calc(select=[x, y])", "Map (at main(Job.java:3))"}},
		{"a, b -&gt; c", []string{"a, b", "c"}},
		{"a-&gt;b", []string{"a->b"}},
		{"join [Source: a, Source: b] -&gt; c", []string{"join [Source: a, Source: b]", "join", "Source: a", "Source: b", "c"}},
		{"Source: a<br/>:- b<br/>:  :- c<br/>:  +- d -&gt; x, y<br/>+- e<br/>   +- f<br/>      +- g<br/>", []string{"Source: a", "b", "c", "d -> x, y", "e", "f", "g"}},
		{"join [Source: a, Source: b]<br/>+- c<br/>", []string{"join [Source: a, Source: b]", "join", "Source: a", "Source: b", "c"}},
		{"caf&eacute; &amp;lt; a &#92; &quot;b&quot; -&gt; c", []string{`café &lt; a \ "b"`, "c"}},
		{"a -&gt; (b", []string{"a", "b"}},
		{"parse (v2 -&gt; lists -&gt; rules", []string{"parse (v2", "lists", "rules"}},
		{"a) -&gt; b] , (c", []string{"a)", "b] , (c"}},
	} {
		if d := cmp.Diff(tt.want, chained(tt.text)); d != "" {
			t.Errorf("%q: -want +got\n%s", tt.text, d)
		}
	}
}

// oldRelease is in the names of what Flink 1.6 and before wrote.
var oldRelease = regexp.MustCompile(`1\.[1-6]([^0-9]|$)`)

// TestCheckKnown: each snapshot of real Flink, and each of the corpus, against
// the job that it is of. What real jobs restored has no error, and none has a
// finding of a kind that its making does not explain.
func TestCheckKnown(t *testing.T) {
	counts := map[string]int{}
	snapshots := 0
	check := func(snap *reader.Snapshot, at string) []string {
		t.Helper()
		snapshots++
		var ids []string
		for _, op := range snap.Operators {
			ids = append(ids, op.ID.String())
		}
		r, err := Run(t.Context(), snap.View(), Options{Job: JobOfNames(ids), At: at, Metadata: snap.Container.Metadata})
		if err != nil {
			t.Fatalf("%s: %v", snap.Location, err)
		}
		if len(r.Restored) != len(snap.Operators) || len(r.Matched) != len(snap.Operators) {
			t.Errorf("%s: %d of %d operators matched", snap.Location, len(r.Matched), len(snap.Operators))
		}
		for _, f := range r.Findings {
			counts[string(f.Severity)+" "+f.Code]++
		}
		return codes(r)
	}
	var known []testenv.KnownSnapshot
	if testenv.Manifest(t).Known > 0 {
		known = testenv.KnownSnapshots(t)
	}
	for _, k := range known {
		beside, _ := filepath.Glob(filepath.Join(k.Location, "*"))
		explained := map[string]bool{
			"union-multiplied": strings.HasPrefix(k.Shape, "union-") || k.Shape == "tutorial",
			"union":            true,
			"no-timers":        k.Shape == "counts",
			"block-order":      len(beside) > 1, // state in files beside _metadata
			"order-undefined":  k.FileMerging,
		}
		for _, c := range check(sptest.Open(t, k.Location), k.At) {
			if strings.HasPrefix(c, "error") || !explained[strings.Fields(c)[1]] {
				t.Errorf("%s: %s", k.Name, c)
			}
		}
	}
	for _, dir := range testenv.Snapshots(t) {
		if strings.Contains(filepath.ToSlash(dir), "/known/") {
			continue
		}
		for _, c := range check(sptest.Open(t, dir), "") {
			if strings.HasPrefix(c, "error") || strings.Contains(c, "old-state") && !oldRelease.MatchString(dir) {
				t.Errorf("%s: %s", dir, c)
			}
		}
	}
	testenv.Found(t, "snapshots", snapshots, testenv.Manifest(t).Snapshots)
	for _, c := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d %s", counts[c], c)
	}
}

// FuzzParsePlan: whatever a plan holds, it is read or refused, and what is read
// can be checked against.
func FuzzParsePlan(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"plan":null,"nodes":[]}`, `{"nodes":[{"id":"33fb6e3d2ef4674d3687e1f6564b35ca","parallelism":4,"description":"a -&gt; b"}]}`,
		`{"plan":{"nodes":[{"id":"33fb6e3d2ef4674d3687e1f6564b35ca","parallelism":2147483647}]}}`, `{"plan":[]}`, `{"plan":{"nodes":[null]}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		job, err := ParsePlan([]byte(text))
		if err != nil {
			return
		}
		if len(job.Operators) == 0 || job.Whole {
			t.Errorf("%+v", job)
		}
		if _, err := Run(t.Context(), sptest.View(sptest.ListOperator("a", 2)), Options{Job: job}); err != nil {
			t.Error(err)
		}
	})
}
