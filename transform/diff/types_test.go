package diff

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/reader"
)

// described is a codec that says of each handle what a test wants.
type describedBy struct {
	format.OperatorCodec
	metas map[*format.OperatorHandle]format.StateMeta
}

func (c describedBy) Describe(_ context.Context, _ format.Source, h *format.OperatorHandle) ([]format.StateMeta, error) {
	m := c.metas[h]
	m.Name = h.States[0].Name
	return []format.StateMeta{m}, nil
}

// TestDiffTypesOfSubtasks: the descriptions of all subtasks are compared, with
// those of the other side in the same encoding, whichever subtask has them.
func TestDiffTypesOfSubtasks(t *testing.T) {
	// "A+long" is the description long in the encoding A.
	in := func(descriptions ...string) format.View {
		op := sptest.Operator("op")
		op.Parallelism = int32(len(descriptions))
		c := describedBy{metas: map[*format.OperatorHandle]format.StateMeta{}}
		for i, text := range descriptions {
			sub := &format.Subtask{Index: int32(i)}
			op.Subtasks = append(op.Subtasks, sub)
			switch encoding, description, _ := strings.Cut(text, "+"); encoding {
			case "finished":
				sub.Finished = true
			case "":
			default:
				sub.Managed = rawStates(st{"s", format.ModeList, []string{"x"}})
				c.metas[sub.Managed] = format.StateMeta{Encoding: format.Wire(encoding), Envelope: []byte(description)}
			}
		}
		in := sptest.View(op)
		raw, err := in.Codec(format.CodecRaw)
		if err != nil {
			t.Fatal(err)
		}
		c.OperatorCodec = raw
		in.Codecs = sptest.CodecsFunc(func(format.CodecID) (format.OperatorCodec, error) { return c, nil })
		return in
	}
	ignore := Options{Ignore: map[Kind]bool{KindElements: true, KindParallelism: true, KindSubtasks: true}}
	const changed = "types: op/s its serializer snapshot changed"
	for _, tt := range []struct {
		a, b format.View
		want string
	}{
		{in("A+long", "A+long"), in("A+long", "A+long"), ""},
		{in("A+long", "A+int"), in("A+int", "A+long"), ""},
		{in("A+long", "A+long"), in("A+int", "A+int"), changed},
		{in("A+long", "A+long"), in("A+long", "A+int"), changed + " in some subtasks: new in subtask 1"},
		{in("A+long", "A+int"), in("A+long", "A+long"), changed + " in some subtasks: gone from subtask 1"},
		{in("A+long", "A+int", "A+int"), in("A+long", "A+text", "A+long", "A+text", "A+text"), changed + " in some subtasks: new in subtasks 1, 3–4, gone from subtasks 1–2"},
		{in("", "A+long"), in("A+long", "A+int"), changed + " in some subtasks: new in subtask 1"},
		{in("A+long"), in("A+long", "A+long", "A+long"), ""}, // rescaled
		// Unlike encodings are not compared: another release makes other bytes of the same types.
		{in("A+long"), in("B+LONG"), ""},
		{in("A+long", "B+LONG"), in("B+LONG", "B+LONG"), ""},
		{in("A+long", "B+LONG"), in("B+INT", "A+long"), changed + " in some subtasks: new in subtask 0, gone from subtask 1"},
	} {
		if got := strings.Join(differences(diffOf(t, tt.a, tt.b, ignore)), "; "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	// A finished subtask holds nothing, whatever its entry says.
	a, b := in("A+long", "A+long"), in("A+long", "A+int")
	b.Operators[0].Subtasks[1].Finished = true
	if got := differences(diffOf(t, a, b, ignore)); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

// wholes is a codec whose streams have one description for all of their states,
// the form of each.
type wholes struct{ describedBy }

func (c wholes) SplitEncoding(w format.Wire) (format.Wire, []byte) {
	encoding, whole, ok := strings.Cut(string(w), "+")
	if !ok {
		return w, nil
	}
	return format.Wire(encoding), []byte(whole)
}

func (c wholes) Describe(_ context.Context, _ format.Source, h *format.OperatorHandle) (metas []format.StateMeta, _ error) {
	for _, s := range h.States {
		m := c.metas[h]
		m.Name = s.Name
		metas = append(metas, m)
	}
	return metas, nil
}

// TestDiffTypesAsAWhole: where descriptions cannot be split, a change is found, and
// it is said that it may be of another state; states that came or went explain it.
func TestDiffTypesAsAWhole(t *testing.T) {
	in := func(mode format.Mode, form string, states ...string) format.View {
		op := sptest.Operator("op", nil)
		var all []st
		for _, s := range states {
			all = append(all, st{s, mode, []string{"x"}})
		}
		h := rawStates(all...)
		op.Subtasks[0].Managed = h
		in := sptest.View(op)
		raw, err := in.Codec(format.CodecRaw)
		if err != nil {
			t.Fatal(err)
		}
		c := wholes{describedBy{raw, map[*format.OperatorHandle]format.StateMeta{h: {Encoding: format.Wire(form), Envelope: []byte(form)}}}}
		in.Codecs = sptest.CodecsFunc(func(format.CodecID) (format.OperatorCodec, error) { return c, nil })
		return in
	}
	list := func(form string, states ...string) format.View { return in(format.ModeList, form, states...) }
	const split = " the serializer snapshots of this and other states changed, and cannot be separated"
	for _, tt := range []struct {
		a, b format.View
		want string
	}{
		{list("A+x", "s"), list("A+x", "s"), ""},
		{list("A+x", "s"), list("A+y", "s"), "types: op/s its serializer snapshot changed"},
		{list("A+x", "s", "t"), list("A+y", "s", "t"), "types: op/s" + split + "; types: op/t" + split},
		{list("A+x", "s"), list("A+y", "s", "t"), "states: op/t list state added"},
		{list("A+x", "s", "t"), list("A+y", "s"), "states: op/t list state removed"},
		{list("A+x", "s"), list("B+y", "s"), ""}, // another encoding
		// A mode is part of a description, and named as what it is.
		{list("A", "s"), in(format.ModeUnion, "A+x", "s"), "states: op/s mode list → union"},
		{list("A+x", "s"), in(format.ModeUnion, "A+y", "s"), "states: op/s mode list → union"},
	} {
		if got := strings.Join(differences(diffOf(t, tt.a, tt.b, Options{Ignore: map[Kind]bool{KindElements: true}})), "; "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestTypeOfOneSubtask: savepoints of real Flink in which one subtask describes a
// state in another way than the other subtask: diff says so, and where.
// With a class that is not known, the descriptions in a stream cannot be split,
// and a change in them is found all the same.
func TestTypeOfOneSubtask(t *testing.T) {
	const long, date = "LongSerializer$LongSerializerSnapshot", "DateSerializer$DateSerializerSnapshot"
	const unknown, other = "LongSerializer$XongSerializerSnapshot", "LongSerializer$YongSerializerSnapshot"
	const operators, keyed = "flink-2.3-operator", "flink-1.20-keyed-rocksdb"
	for _, tt := range []struct {
		name       string
		old, now   *reader.Snapshot
		diff, back string // in what the diff says, and the other way round
	}{
		{"operator state", sptest.WithClass(t, operators, long, date), sptest.WithClass(t, operators, long, long),
			"types: rules/rules its serializer snapshot changed in some subtasks: gone from subtask 1",
			"types: rules/rules its serializer snapshot changed in some subtasks: new in subtask 1"},
		{"keyed state", sptest.WithClass(t, keyed, long, date), sptest.WithClass(t, keyed, long, long),
			"keyed: 01203aa9/ the description of its states changed in some subtasks: gone from subtask 1",
			"keyed: 01203aa9/ the description of its states changed in some subtasks: new in subtask 1"},
		{"classes that are not known", sptest.WithClass(t, operators, unknown, unknown), sptest.WithClass(t, operators, unknown, other),
			"types: rules/rules its serializer snapshot changed in some subtasks: new in subtask 1",
			"types: rules/rules its serializer snapshot changed in some subtasks: gone from subtask 1"},
	} {
		for _, d := range []struct {
			a, b *reader.Snapshot
			want string
		}{{tt.old, tt.now, tt.diff}, {tt.now, tt.old, tt.back}} {
			if got := differences(diffOf(t, d.a.View(), d.b.View(), Options{})); !slices.Equal(got, []string{d.want}) {
				t.Errorf("%s: %q, want %q", tt.name, got, d.want)
			}
		}
	}
}
