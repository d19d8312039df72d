package summary_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// The truth about the snapshots of corpus/known: what Flink's own reader says
// of _metadata, and what every subtask held. Nothing here is computed by spt.

type trueStream struct {
	Class string
	Size  int64
	Name  string
	Path  string
	Text  string // of a segment
}

type trueState struct {
	Name, Mode string
	Offsets    []int64
}

type trueHandle struct {
	Class        string
	Size         int64
	States       []trueState
	Stream       *trueStream
	KeyGroups    []int64 `json:"key_groups"`
	Offsets      []int64
	Meta         *trueStream
	Shared       []trueNamed
	Private      []trueNamed
	Materialized []trueHandle
	Changes      []trueHandle
}

type trueNamed struct{ Stream trueStream }

type trueOperator struct {
	ID          string
	Parallelism int
	Max         int   `json:"max_parallelism"`
	Coordinator int64 `json:"coordinator_bytes"`
	Subtasks    map[string]struct {
		Operator []trueHandle `json:"managed_operator"`
		Keyed    []trueHandle `json:"managed_keyed"`
		Input    []trueHandle `json:"input_channel"`
		Output   []trueHandle `json:"result_subpartition"`
	}
}

type trueMetadata struct {
	ID        int64 `json:"checkpoint_id"`
	Operators []trueOperator
}

type about struct {
	Snapshot string
	Options  struct {
		Shape, Format, Backend                                               string
		Checkpoint, Incremental, Compress, Changelog, Unaligned, FileMerging bool
	}
}

// known calls f for every snapshot of known content, but those left out.
func known(t *testing.T, leftOut func(about) bool, f func(t *testing.T, dir string, a about, sp *format.Savepoint)) {
	t.Helper()
	dirs := testenv.KnownDirectories(t)
	left := 0
	for _, dir := range dirs {
		var a about
		load(t, filepath.Join(dir, "about.json"), &a)
		if leftOut(a) {
			left++
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			f(t, dir, a, decode(t, filepath.Join(dir, a.Snapshot, "_metadata")))
		})
	}
	t.Logf("%d snapshots, %d left out", len(dirs)-left, left)
}

func none(about) bool { return false }

// inFlight reports whether the truth is that after the in-flight data arrived.
func inFlight(a about) bool { return a.Options.Unaligned }

func load(t testing.TB, file string, v any) {
	t.Helper()
	p, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(p, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func decode(t testing.TB, file string) *format.Savepoint {
	t.Helper()
	p, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := metadata.Decode(format.NewBytes(p), metadata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

func of(t testing.TB, sp *format.Savepoint) *summary.Summary {
	t.Helper()
	s, err := summary.Of(context.Background(), sp)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// row is a state of an operator in numbers that JSON can tell too.
type row struct {
	subtasks  int
	elements  int64
	bytes     int64
	keyGroups int64
	handles   string
}

func modeKind(mode string) summary.StateKind {
	switch mode {
	case "SPLIT_DISTRIBUTE":
		return summary.List
	case "UNION":
		return summary.Union
	case "BROADCAST":
		return summary.Broadcast
	}
	return summary.StateKind(mode)
}

// places adds up where bytes lie: in _metadata, in files, each range once.
type places struct {
	inline int64
	own    map[string]int64
	shared map[string]int64
}

func (p *places) add(s *trueStream) {
	if s == nil {
		return
	}
	switch s.Class {
	case "ByteStreamStateHandle":
		p.inline += s.Size
	case "RelativeFileStateHandle":
		p.own[s.Path] = s.Size
	case "FileStateHandle":
		p.file(s.Path, s.Size)
	case "SegmentFileStateHandle":
		p.file(s.Text, s.Size) // names the file and the range
	case "EmptySegmentFileStateHandle":
	default:
		panic(s.Class)
	}
}

func (p *places) file(name string, n int64) {
	if strings.Contains(name, "/shared/") || strings.Contains(name, "/taskowned/") {
		p.shared[name] = n
	} else {
		p.own[name] = n
	}
}

func total(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// expected adds up one operator as Flink's reader shows it.
func expected(op trueOperator, all *places) (map[string]row, *places) {
	rows := map[string]row{}
	own := &places{own: map[string]int64{}, shared: map[string]int64{}}
	put := func(s *trueStream) { all.add(s); own.add(s) }
	if op.Coordinator > 0 {
		rows["coordinator "] = row{elements: -1, bytes: op.Coordinator}
		all.inline += op.Coordinator
		own.inline += op.Coordinator
	}
	for _, sub := range op.Subtasks {
		for _, h := range sub.Operator {
			put(h.Stream)
			for name, n := range elementBytes(h) {
				r := rows[name]
				r.bytes += n
				rows[name] = r
			}
			for _, s := range h.States {
				name := string(modeKind(s.Mode)) + " " + s.Name
				r := rows[name]
				r.subtasks++
				r.elements += int64(len(s.Offsets))
				rows[name] = r
			}
		}
		var keyedStreams places
		keyedStreams.own, keyedStreams.shared = map[string]int64{}, map[string]int64{} //nolint:govet // read through the map
		for _, h := range sub.Keyed {
			r := rows["keyed "]
			r.subtasks++
			r.elements = -1
			r.keyGroups += h.KeyGroups[1] - h.KeyGroups[0] + 1
			var add func(h trueHandle)
			add = func(h trueHandle) {
				for _, s := range append([]*trueStream{h.Stream, h.Meta}, streamsOf(h.Shared, h.Private)...) {
					put(s)
					if s != nil {
						r.bytes += s.Size
					}
				}
				for _, m := range h.Materialized {
					add(m)
				}
				for _, c := range h.Changes {
					r.bytes += c.Size
				}
			}
			add(h)
			r.handles = map[string]string{
				"KeyGroupsStateHandle": "full", "KeyGroupsSavepointStateHandle": "savepoint",
				"IncrementalRemoteKeyedStateHandle": "incremental", "ChangelogStateBackendHandleImpl": "changelog",
			}[h.Class]
			rows["keyed "] = r
		}
	}
	return rows, own
}

func streamsOf(lists ...[]trueNamed) (all []*trueStream) {
	for _, l := range lists {
		for _, n := range l {
			all = append(all, &n.Stream)
		}
	}
	return all
}

// elementBytes gives each state the bytes from each of its elements to the next
// offset of any state, one element at a time.
func elementBytes(h trueHandle) map[string]int64 {
	type at struct {
		off   int64
		state string
	}
	var all []at
	for _, s := range h.States {
		for _, off := range s.Offsets {
			all = append(all, at{off, string(modeKind(s.Mode)) + " " + s.Name})
		}
	}
	slices.SortStableFunc(all, func(a, b at) int { return int(a.off - b.off) })
	bytes := map[string]int64{}
	for i, e := range all {
		end := h.Stream.Size
		if i+1 < len(all) {
			end = all[i+1].off
		}
		bytes[e.state] += end - e.off
	}
	return bytes
}

func TestSummaryAgainstFlinksReader(t *testing.T) {
	var operators, states int
	var elements, framed int64
	known(t, none, func(t *testing.T, dir string, a about, sp *format.Savepoint) {
		var truth trueMetadata
		load(t, filepath.Join(dir, "metadata.json"), &truth)
		s := of(t, sp)
		if sp.ID != truth.ID {
			t.Errorf("id %d, Flink says %d", sp.ID, truth.ID)
		}
		if len(s.Operators) != len(truth.Operators) {
			t.Fatalf("%d operators, Flink says %d", len(s.Operators), len(truth.Operators))
		}
		all := &places{own: map[string]int64{}, shared: map[string]int64{}}
		var subtasks int
		var inFlight, changes, offsets int64
		for _, want := range truth.Operators {
			i := slices.IndexFunc(s.Operators, func(o *summary.Operator) bool { return o.ID.String() == want.ID })
			if i < 0 {
				t.Errorf("operator %s is not there", want.ID)
				continue
			}
			got := s.Operators[i]
			operators++
			subtasks += len(want.Subtasks)
			if int(got.Parallelism) != want.Parallelism || int(got.MaxParallelism) != want.Max || got.Coordinator != want.Coordinator {
				t.Errorf("%s: parallelism %d of %d, coordinator %d; want %d of %d, %d", want.ID, got.Parallelism, got.MaxParallelism, got.Coordinator, want.Parallelism, want.Max, want.Coordinator)
			}
			if got.Present != len(want.Subtasks) || got.Missing != want.Parallelism-len(want.Subtasks) || got.Finished != 0 {
				t.Errorf("%s: %d present, %d missing, %d finished of %d with %d in the file", want.ID, got.Present, got.Missing, got.Finished, want.Parallelism, len(want.Subtasks))
			}
			rows, own := expected(want, all)
			seen := map[string]row{}
			var opInFlight, opChanges int64
			for _, st := range got.States {
				if st.Kind == summary.InFlight {
					opInFlight += st.Stored.State()
					continue
				}
				if st.Handles == "changelog" {
					opChanges += st.Stored.State()
				}
				offsets += st.Stored.Offsets
				states++
				elements += max(st.Elements, 0)
				seen[string(st.Kind)+" "+st.Name] = row{st.Subtasks, st.Elements, st.Bytes, st.KeyGroups, st.Handles}
			}
			opFraming, keyedFraming := framing(want)
			var gotKeyed int64
			for _, st := range got.States {
				gotKeyed += st.Framing.State()
			}
			if opChanges > 0 { // bytes of the file that no handle claims
				opChanges += got.Framing.State() - opFraming
			} else if got.Framing.State() != opFraming {
				t.Errorf("%s: %d bytes of framing of operator state, want %d", want.ID, got.Framing.State(), opFraming)
			}
			if gotKeyed != keyedFraming {
				t.Errorf("%s: %d bytes of framing of keyed state, want %d", want.ID, gotKeyed, keyedFraming)
			}
			framed += opFraming + keyedFraming
			if !maps.Equal(seen, rows) {
				t.Errorf("%s:\n got  %v\n want %v", want.ID, seen, rows)
			}
			// The JSON does not show the streams of channels and of changes.
			if b := got.Bytes; b.State()-opInFlight-opChanges != own.inline+total(own.own)+total(own.shared) {
				t.Errorf("%s: %+v, want inline %d, own %d, shared %d", want.ID, b, own.inline, total(own.own), total(own.shared))
			}
			inFlight += opInFlight
			changes += opChanges
		}
		if s.Subtasks != subtasks {
			t.Errorf("%d subtasks, want %d", s.Subtasks, subtasks)
		}
		if b := s.Bytes; inFlight+changes == 0 && (b.Inline != all.inline || b.Own != total(all.own) || b.Shared != total(all.shared) || b.Packed != 0) {
			t.Errorf("%+v, want inline %d, own %d, shared %d", b, all.inline, total(all.own), total(all.shared))
		}
		if inFlight > 0 != a.Options.Unaligned || changes > 0 != a.Options.Changelog {
			t.Errorf("in flight %d, changes %d with %+v", inFlight, changes, a.Options)
		}
		var trueOffsets int64
		for _, op := range truth.Operators {
			for _, sub := range op.Subtasks {
				for _, h := range append(sub.Operator, sub.Keyed...) {
					trueOffsets += 8 * int64(len(h.Offsets))
					for _, st := range h.States {
						trueOffsets += 8 * int64(len(st.Offsets))
					}
				}
			}
		}
		if offsets != trueOffsets {
			t.Errorf("%d bytes of offsets, want %d", offsets, trueOffsets)
		}
	})
	t.Logf("%d operators, %d states, %d elements, %d bytes of framing agree with Flink's own reader", operators, states, elements, framed)
	if framed == 0 {
		t.Error("no snapshot with framing")
	}
}

// framing is the bytes in front of the elements, and in front of the key groups,
// by what Flink's reader shows.
func framing(op trueOperator) (ofOperator, ofKeyed int64) {
	for _, sub := range op.Subtasks {
		for _, h := range sub.Operator {
			if h.Stream == nil {
				continue
			}
			ofOperator += h.Stream.Size
			for _, n := range elementBytes(h) {
				ofOperator -= n
			}
		}
		var add func(h trueHandle)
		add = func(h trueHandle) {
			switch {
			case h.Meta != nil:
				ofKeyed += h.Meta.Size
			case h.Stream != nil && len(h.Offsets) > 0:
				first := h.Stream.Size
				for _, v := range h.Offsets {
					if v > 0 {
						first = min(first, v)
					}
				}
				ofKeyed += first
			}
			for _, m := range h.Materialized {
				add(m)
			}
		}
		for _, h := range sub.Keyed {
			add(h)
		}
	}
	return ofOperator, ofKeyed
}

// TestBytesAddUp: rows add up to their operator, operators to the total, and the
// total is the bytes of all distinct streams, in every snapshot of the corpus.
func TestBytesAddUp(t *testing.T) {
	n, notEmpty := 0, 0
	stored := false
	for _, dir := range testenv.Snapshots(t) {
		path := filepath.Join(dir, "_metadata")
		p, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sp, err := metadata.Decode(format.NewBytes(p), metadata.Options{})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		n++
		for _, op := range sp.Operators {
			stored = stored || slices.ContainsFunc(op.Subtasks, func(s *format.Subtask) bool { return s.Managed != nil || s.ManagedKeyed != nil })
		}
		s := of(t, sp)
		var all, want int64
		for _, op := range s.Operators {
			rows := op.Framing.State()
			for _, st := range op.States {
				rows += st.Stored.State()
				if st.Framing.State() > st.Stored.State() || st.Framing.State() < 0 {
					t.Errorf("%s: %s %q: %d bytes of framing in %d", path, st.Kind, st.Name, st.Framing.State(), st.Stored.State())
				}
			}
			if rows != op.Bytes.State() {
				t.Errorf("%s: rows of %s add up to %d, the operator has %d", path, op.Label(), rows, op.Bytes.State())
			}
			all += op.Bytes.State()
		}
		seen := map[format.StreamKey]bool{}
		_ = sp.EachStream(func(_ format.Place, st format.Stream) error {
			if _, _, ok := format.Reference(st); ok {
				if seen[st.Key()] {
					return nil
				}
				seen[st.Key()] = true
			}
			want += format.SizeOf(st)
			return nil
		})
		want += changesInMemory(sp)
		if all != s.Bytes.State() || all != want {
			t.Errorf("%s: operators add up to %d, the total is %d, the streams have %d bytes", path, all, s.Bytes.State(), want)
		}
		if want > 0 {
			notEmpty++
		}
	}
	testenv.Some(t, "snapshots with state", notEmpty, stored)
	t.Logf("%d snapshots, %d of them with state", n, notEmpty)
}

// changesInMemory is bytes of changes that are in no stream.
func changesInMemory(sp *format.Savepoint) (n int64) {
	var add func(format.KeyedHandle)
	add = func(h format.KeyedHandle) {
		switch h := h.(type) {
		case *format.Changelog:
			for _, c := range slices.Concat(h.Materialized, h.Changes) {
				add(c)
			}
		case *format.ChangelogMemory:
			for _, c := range h.Changes {
				n += int64(c.Data.Len())
			}
		}
	}
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			add(sub.ManagedKeyed)
			add(sub.RawKeyed)
		}
	}
	return n
}

// What the subtasks held: the serialized elements themselves.
func TestSummaryAgainstWhatSubtasksHeld(t *testing.T) {
	var compared, inTruth int
	var bytes int64
	known(t, inFlight, func(t *testing.T, dir string, a about, sp *format.Savepoint) {
		var truth struct {
			Operators []struct {
				ID       string
				Subtasks []struct {
					State map[string]struct {
						Kind string
						Raw  []json.RawMessage
					} `json:"operator_state"`
				}
			}
		}
		load(t, filepath.Join(dir, "truth.json"), &truth)
		s := of(t, sp)
		for _, op := range truth.Operators {
			i := slices.IndexFunc(s.Operators, func(o *summary.Operator) bool { return o.ID.String() == op.ID })
			if i < 0 {
				t.Errorf("operator %s is not there", op.ID)
				continue
			}
			type held struct{ n, bytes int64 }
			want := map[string]held{}
			for _, sub := range op.Subtasks {
				for name, st := range sub.State {
					if st.Kind == "broadcast" {
						continue
					}
					h := want[st.Kind+" "+name]
					h.n += int64(len(st.Raw))
					for _, r := range st.Raw {
						h.bytes += rawSize(t, r)
					}
					want[st.Kind+" "+name] = h
				}
			}
			inTruth += len(want)
			for _, st := range s.Operators[i].States {
				if st.Kind != summary.List && st.Kind != summary.Union {
					continue
				}
				w, ok := want[string(st.Kind)+" "+st.Name]
				if !ok {
					continue // a state that the tool which wrote the truth does not see
				}
				compared++
				if st.Elements != w.n {
					t.Errorf("%s %s: %d elements, %d were held", op.ID, st.Name, st.Elements, w.n)
				}
				if !a.Options.Compress {
					bytes += st.Bytes
					if st.Bytes != w.bytes {
						t.Errorf("%s %s: %d bytes, %d were held", op.ID, st.Name, st.Bytes, w.bytes)
					}
				}
			}
		}
	})
	t.Logf("%d states compared, %d bytes of elements", compared, bytes)
	testenv.Found(t, "list and union states", compared, inTruth)
}

// rawSize is the length of a serialized element: hex, or {"digest": [n, sha]}.
func rawSize(t testing.TB, r json.RawMessage) int64 {
	t.Helper()
	var text string
	if json.Unmarshal(r, &text) == nil {
		return int64(len(text) / 2)
	}
	var d struct{ Digest json.RawMessage }
	if err := json.Unmarshal(r, &d); err != nil {
		t.Fatal(err)
	}
	var n int64
	if _, err := fmt.Sscanf(strings.Trim(string(d.Digest), `"[{ `), "%d", &n); err != nil {
		t.Fatalf("%s: %v", r, err)
	}
	return n
}

func TestMayBeMultiplied(t *testing.T) {
	var inflated, modulo int
	known(t, none, func(t *testing.T, _ string, a about, sp *format.Savepoint) {
		var unions, warned int
		for _, op := range of(t, sp).Operators {
			for _, st := range op.States {
				if st.Kind == summary.Union {
					unions++
				}
				if st.MayBeMultiplied {
					warned++
					if st.Kind != summary.Union {
						t.Errorf("%s state %q", st.Kind, st.Name)
					}
				}
			}
		}
		switch a.Options.Shape {
		case "union-inflated":
			inflated++
			if unions == 0 || warned != unions {
				t.Errorf("%d of %d union states are said to be multiplied", warned, unions)
			}
		case "union-modulo":
			modulo++
			if unions == 0 || warned != 0 {
				t.Errorf("%d of %d union states are said to be multiplied", warned, unions)
			}
		}
	})
	for shape, n := range map[string]int{"union-inflated": inflated, "union-modulo": modulo} {
		of := 0
		for _, k := range testenv.KnownSnapshots(t) {
			if k.Options.Shape == shape {
				of++
			}
		}
		testenv.Found(t, "snapshots of shape "+shape, n, of)
	}
}

func TestKindOfKnownSnapshots(t *testing.T) {
	kinds := map[summary.Kind]int{}
	known(t, none, func(t *testing.T, _ string, a about, sp *format.Savepoint) {
		o := a.Options
		want := summary.Kind{Type: "savepoint", Format: o.Format, Changelog: o.Changelog, Unaligned: o.Unaligned}
		if o.Checkpoint {
			want.Type, want.Format = "checkpoint", ""
			if o.Shape == "keyed" || o.Shape == "counts" { // others have no keyed state, which tells
				switch {
				case o.Incremental:
					want.Format = "incremental"
				case !o.Changelog: // the first checkpoint has changes only
					want.Format = "full"
				}
			}
		}
		got := summary.KindOf(sp)
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		kinds[got]++
	})
	t.Logf("%v", kinds)
}
