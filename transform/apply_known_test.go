package transform

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

// applied is what the tests of Apply counted.
type applied struct {
	written, refused                             int
	states, elements, unions, varied, broadcasts int
	merged, cut, whole, groups, groupBytes       int
	reasons                                      map[string]int
}

// TestApplyKnown: every snapshot of the known corpus, at seven parallelisms and
// in both families, is written as planned or refused for the right reason.
func TestApplyKnown(t *testing.T) {
	n := applied{reasons: map[string]int{}}
	for _, k := range testenv.KnownSnapshots(t) {
		stores := sptest.Stores()
		snap := sptest.OpenIn(t, stores, k.Location)
		for _, to := range []int32{1, 2, 3, 4, 5, 7} {
			plan, err := PlanRescale(t.Context(), snap.View(), RescaleOptions{To: to, At: k.At})
			if err != nil {
				t.Fatalf("%s to %d: %v", k.Name, to, err)
			}
			before := fmt.Sprintf("%+v", snap.Savepoint)
			sp, err := plan.Apply(t.Context())
			if after := fmt.Sprintf("%+v", snap.Savepoint); after != before {
				t.Fatalf("%s to %d: the input was changed", k.Name, to)
			}
			if want := whyRefused(snap.Savepoint, to); want != "" {
				n.refused++
				n.reasons[want]++
				if sp.Savepoint != snap.Savepoint || !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "operator ") {
					t.Errorf("%s to %d: %v, and not that %s", k.Name, to, err, want)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s to %d: %v", k.Name, to, err)
				continue
			}
			n.written++
			for _, target := range []string{"mem://flink-%d", "mem://%d.spt"} {
				out := sealed(t, stores, snap, sp, fmt.Sprintf(target, to))
				judgeApplied(t, fmt.Sprintf("%s to %d in %s", k.Name, to, out.Container.Family), plan, snap, out, &n)
			}
		}
	}
	t.Logf("%d snapshots written in both families, %d refused: %v", n.written, n.refused, n.reasons)
	t.Logf("%d states with %d elements, %d unions (%d handed out in another order), %d broadcast maps; keyed streams: %d merged, %d cut, %d handed on whole; %d key groups compared, %d bytes",
		n.states, n.elements, n.unions, n.varied, n.broadcasts, n.merged, n.cut, n.whole, n.groups, n.groupBytes)
	testenv.Found(t, "rescales written or refused", n.written+n.refused, 6*testenv.Manifest(t).Known)
	testenv.Some(t, "keyed streams merged", n.merged, fullKeyed(t))
	testenv.Some(t, "key groups", n.groups, fullKeyed(t))
	testenv.Some(t, "keyed handles of files", n.whole, slices.ContainsFunc(testenv.KnownSnapshots(t), func(k testenv.KnownSnapshot) bool { return k.Options.Incremental }))
}

// whyRefused is what should stand in the way, found out without the plan: the
// new ranges of key groups and what each handle covers.
func whyRefused(sp *format.Savepoint, to int32) string {
	for _, op := range sp.Operators {
		if op.Parallelism == to || op.Finished {
			continue
		}
		flight, changes := false, false
		whole := map[int32]format.KeyGroupRange{}
		for _, s := range op.Subtasks {
			flight = flight || len(s.Input)+len(s.Output) > 0
			if s.ManagedKeyed == nil {
				continue
			}
			if _, full := s.ManagedKeyed.(*format.KeyGroups); !full {
				whole[s.Index] = s.ManagedKeyed.KeyGroups()
			}
			h, is := s.ManagedKeyed.(*format.Changelog)
			changes = changes || is && len(h.Changes) > 0
		}
		if flight {
			return "in-flight data"
		}
		shared := false
		for i := range to {
			first, last := (i*op.MaxParallelism+to-1)/to, ((i+1)*op.MaxParallelism-1)/to
			n := 0
			for _, r := range whole {
				cut := r.First < first || r.First+r.Count-1 > last
				if r.First <= last && r.First+r.Count > first {
					n++
					if cut && changes {
						return "holds a changelog"
					}
				}
			}
			shared = shared || n > 1
		}
		if shared {
			return "a new subtask needs the keyed state of old subtasks"
		}
	}
	return ""
}

// judgeApplied compares a written snapshot with the plan and with its input.
func judgeApplied(t *testing.T, where string, plan *RescalePlan, from, out *reader.Snapshot, n *applied) {
	t.Helper()
	faults := func(f finding.Finding) {
		if f.Severity == finding.Error {
			t.Errorf("%s: %+v", where, f)
		}
	}
	if _, err := out.Verify(t.Context(), reader.VerifyOptions{Read: true}, faults); err != nil {
		t.Errorf("%s: %v", where, err)
	}
	again, err := PlanRescale(t.Context(), out.View(), RescaleOptions{To: plan.To})
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for i, p := range plan.Operators {
		op := out.Operators[i]
		if op.ID != p.Operator.ID || op.Parallelism != p.To || op.MaxParallelism != p.Operator.MaxParallelism || !op.Finished && len(op.Subtasks) != int(p.To) && len(p.States) > 0 {
			t.Fatalf("%s: operator %d is %+v", where, i, op)
		}
		if !bytes.Equal(sptest.Bytes(t, from.Source(), p.Operator.Coordinator), sptest.Bytes(t, out.Source(), op.Coordinator)) {
			t.Errorf("%s: the coordinator's state is another", where)
		}
		for _, st := range p.States {
			at := slices.IndexFunc(again.Operators[i].States, func(s *StatePlan) bool { return s.Name == st.Name && s.Mode == st.Mode && s.Raw == st.Raw })
			if at < 0 {
				t.Errorf("%s: state %q is gone", where, st.Name)
				continue
			}
			second := again.Operators[i].States[at]
			for sub := range st.Subtasks {
				want := handed(t, from.View(), p.Operator, st, sub)
				got := handed(t, out.View(), op, second, sub)
				n.states++
				n.elements += len(want)
				// The writer names files anew, so that what Flink leaves alone can
				// come in another order.
				if p.Order != "" || st.OrderVaries && sub > 0 || p.From == p.To {
					// Who gets what holds all the same.
					if st.Mode == format.ModeUnion {
						n.varied++
						got, want = sorted(got), sorted(want)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: subtask %d of %s would get of %s %q\n%q\nand was to get\n%q", where, sub, op.Label(), st.Mode, st.Name, got, want)
				}
				if p.From == p.To {
					continue // as it was
				}
				// What lies with the subtask itself.
				var own []string
				if h := handleAt(op, int32(sub), st.Raw); h != nil && stateIndex(h, format.NewText(st.Name), st.Mode) >= 0 {
					own = sptest.Elements(t, out.View(), h, st.Name)
				}
				switch {
				case st.Mode == format.ModeUnion && sub > 0:
					want = nil
				case st.Mode == format.ModeUnion:
					n.unions++
				case st.Mode == format.ModeBroadcast:
					n.broadcasts++
				}
				if !slices.Equal(own, want) {
					t.Errorf("%s: subtask %d of %s holds of %s %q\n%q\nand not\n%q", where, sub, op.Label(), st.Mode, st.Name, own, want)
				}
			}
		}
		judgeKeyed(t, where, p, from, out, op, n)
	}
}

// handleAt is the handle of a subtask by its index.
func handleAt(op *format.Operator, index int32, raw bool) *format.OperatorHandle {
	for _, s := range op.Subtasks {
		if s.Index == index {
			return handleOf(s, raw)
		}
	}
	return nil
}

// handed is the elements that the plan gives a subtask.
func handed(t *testing.T, in format.View, op *format.Operator, st *StatePlan, sub int) (all []string) {
	t.Helper()
	for _, src := range st.Subtasks[sub].Sources {
		all = append(all, sptest.Elements(t, in, handleAt(op, src.Old, st.Raw), st.Name)[src.First:src.First+src.Count]...)
	}
	if st.Mode == format.ModeBroadcast && len(all) > 1 {
		all = all[len(all)-1:]
	}
	return all
}

// judgeKeyed compares keyed state: the same bytes of each key group for the
// same subtask, under an equal header.
func judgeKeyed(t *testing.T, where string, p *OperatorPlan, from, out *reader.Snapshot, op *format.Operator, n *applied) {
	t.Helper()
	old := map[int32][]byte{} // key group -> its bytes
	var header []byte
	var handles []format.KeyedHandle
	for _, s := range p.Operator.Subtasks {
		handles = append(handles, s.ManagedKeyed)
		h, full := s.ManagedKeyed.(*format.KeyGroups)
		if !full {
			continue
		}
		data, offs := sptest.Bytes(t, from.Source(), h.Data), sptest.OffsetsOf(t, h.Offsets)
		for i, off := range offs {
			if off == 0 {
				continue
			}
			end := int64(len(data))
			for _, o := range offs[i+1:] {
				if o > 0 {
					end = o
					break
				}
			}
			old[h.Range.First+int32(i)] = data[off:end]
		}
		mine := data
		if i := slices.IndexFunc(offs, func(o int64) bool { return o > 0 }); i >= 0 {
			mine = data[:offs[i]]
		}
		if header != nil && !bytes.Equal(header, mine) {
			t.Fatalf("%s: headers differ, and it was merged", where)
		}
		header = mine
	}
	if len(p.Keyed) == 0 {
		return
	}
	for sub, d := range p.Keyed[0].Subtasks {
		var got format.KeyedHandle
		for _, s := range op.Subtasks {
			if s.Index == int32(sub) {
				got = s.ManagedKeyed
			}
		}
		if got == nil {
			if len(d.Pieces) > 0 {
				t.Errorf("%s: subtask %d of %s has no keyed state", where, sub, op.Label())
			}
			continue
		}
		h, full := got.(*format.KeyGroups)
		if !full { // handed on
			n.whole++
			want := keyedText(t, from, d.Pieces[0].Handle)
			if text := keyedText(t, out, got); text != want || len(d.Pieces) != 1 || !slices.Contains(handles, handles[d.Pieces[0].Old]) {
				t.Errorf("%s: subtask %d holds\n%s\nand not\n%s", where, sub, text, want)
			}
			continue
		}
		if h.Range != d.Range {
			t.Errorf("%s: subtask %d holds key groups %v, not %v", where, sub, h.Range, d.Range)
		}
		data, offs := sptest.Bytes(t, out.Source(), h.Data), sptest.OffsetsOf(t, h.Offsets)
		if !bytes.HasPrefix(data, header) {
			t.Errorf("%s: subtask %d has another header", where, sub)
		}
		size := len(header)
		for i, off := range offs {
			want, has := old[h.Range.First+int32(i)]
			n.groups++
			n.groupBytes += len(want)
			size += len(want)
			if !has && off != 0 || has && (off < int64(len(header)) || !bytes.HasPrefix(data[off:], want)) {
				t.Errorf("%s: key group %d of subtask %d is not what it was", where, h.Range.First+int32(i), sub)
			}
		}
		if len(data) != size {
			t.Errorf("%s: subtask %d has %d bytes of keyed state, not %d", where, sub, len(data), size)
		}
		if len(d.Pieces) > 1 {
			n.merged++
		} else if d.Pieces[0].Groups != handles[d.Pieces[0].Old].KeyGroups() {
			n.cut++
		}
	}
}

// keyedText describes a keyed handle that is no plain stream: what it is, and
// the bytes of all its files under their local names.
func keyedText(t *testing.T, snap *reader.Snapshot, h format.KeyedHandle) string {
	t.Helper()
	one := func(s format.Stream) string {
		return fmt.Sprintf("%x", sha256.Sum256(sptest.Bytes(t, snap.Source(), s)))[:16]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%T %v", h, h.KeyGroups())
	switch h := h.(type) {
	case *format.Incremental:
		fmt.Fprintf(&b, " %d %s meta %s", h.CheckpointID, h.BackendID, one(h.Meta))
		for _, f := range slices.Concat(h.Shared, h.Private) {
			fmt.Fprintf(&b, "\n %s %s", f.Name, one(f.Data))
		}
	case *format.Changelog:
		for _, k := range slices.Concat(h.Materialized, h.Changes) {
			if k != nil {
				b.WriteString("\n " + keyedText(t, snap, k))
			}
		}
	case *format.ChangelogStream:
		for _, s := range h.Streams {
			fmt.Fprintf(&b, "\n @%d %s", s.Offset, one(s.Data))
		}
	case *format.KeyGroups:
		fmt.Fprintf(&b, " %v %s", sptest.OffsetsOf(t, h.Offsets), one(h.Data))
	}
	return b.String()
}

// TestRescaleTwice: a rescaled snapshot, whose subtasks share files, is
// rescaled again, and every key group is still what it was.
func TestRescaleTwice(t *testing.T) {
	var n applied
	for _, k := range testenv.KnownSnapshots(t) {
		stores := sptest.Stores()
		snap := sptest.OpenIn(t, stores, k.Location)
		for _, steps := range [][]int32{{4, 3}, {7, 2}, {5, 1, 5}} {
			at := snap
			for i, to := range steps {
				plan, err := PlanRescale(t.Context(), at.View(), RescaleOptions{To: to})
				if err != nil {
					t.Fatal(err)
				}
				sp, err := plan.Apply(t.Context())
				if errors.Is(err, format.ErrUnsupported) && whyRefused(at.Savepoint, to) != "" {
					break
				}
				if err != nil {
					t.Errorf("%s, step %d of %v: %v", k.Name, i, steps, err)
					break
				}
				out := sealed(t, stores, at, sp, fmt.Sprintf("mem://%v-%d", steps, i))
				if i == 0 {
					judgeApplied(t, fmt.Sprintf("%s to %v", k.Name, steps[:i+1]), plan, at, out, &n)
				}
				at = out
			}
			if at.Operators == nil || at == snap {
				continue
			}
			first, last := groupsOfAll(t, snap, true), groupsOfAll(t, at, false)
			for key, want := range first {
				got, ok := last[key]
				n.groups++
				if !ok || !bytes.HasPrefix(got, want) {
					t.Errorf("%s by %v: %s is not what it was", k.Name, steps, key)
				}
			}
			if len(first) != len(last) {
				t.Errorf("%s by %v: %d key groups became %d", k.Name, steps, len(first), len(last))
			}
		}
	}
	t.Logf("%d key groups compared", n.groups)
	testenv.Some(t, "key groups", n.groups, fullKeyed(t))
}

// groupsOfAll gives the bytes of each key group, by operator. Where a handle
// names all groups of its stream, they end where they do.
func groupsOfAll(t *testing.T, snap *reader.Snapshot, exact bool) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, op := range snap.Operators {
		for _, s := range op.Subtasks {
			h, ok := s.ManagedKeyed.(*format.KeyGroups)
			if !ok {
				continue
			}
			data, offs := sptest.Bytes(t, snap.Source(), h.Data), sptest.OffsetsOf(t, h.Offsets)
			for i, off := range offs {
				if off == 0 {
					continue
				}
				end := int64(len(data))
				for _, o := range offs[i+1:] {
					if exact && o > 0 {
						end = o
						break
					}
				}
				all[fmt.Sprintf("%s, key group %d", op.Label(), h.Range.First+int32(i))] = data[off:end]
			}
		}
	}
	return all
}

// TestApplyNative: the state of a Go program is rescaled like Flink's.
func TestApplyNative(t *testing.T) {
	stores := sptest.Stores()
	const max, p = 16, 3
	b, err := writer.NewBuilder(t.Context(), "mem://in.spt", &writer.BuilderOptions{Stores: stores})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	op := b.Operator("orders", p, max)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	entries := map[string]int{}
	for i := range int32(p) {
		sub := op.Subtask(i)
		list := sub.List("list")
		for k := range 5 + i {
			check(list.Add(fmt.Sprintf("l%d-%d", i, k)))
		}
		union := sub.Union("union")
		check(union.Add(fmt.Sprintf("u%d", i), "same"))
		m := sub.Broadcast("rules")
		check(m.Put("owner", i))
		keyed := sub.Keyed(native.KeyedState{Name: "sum", Kind: native.KindValue}, native.KeyedState{Name: "tags", Kind: native.KindList})
		for k := range 40 {
			key := fmt.Sprintf("key-%d", k)
			if owner, err := op.SubtaskOf(key); err != nil || owner != i {
				check(err)
				continue
			}
			check(keyed.Put("sum", key, nil, k))
			check(keyed.Put("tags", key, "ns", []int{k}))
			entries[key] = k
		}
	}
	_, err = b.Seal(t.Context())
	check(err)
	if len(entries) != 40 {
		t.Fatalf("%d keys", len(entries))
	}
	snap := sptest.OpenIn(t, stores, "mem://in.spt")
	before := nativeEntries(t, snap)
	n := applied{}
	for _, to := range []int32{1, 2, 3, 4, 5, 7, 16} {
		plan, err := PlanRescale(t.Context(), snap.View(), RescaleOptions{To: to})
		check(err)
		sp, err := plan.Apply(t.Context())
		check(err)
		out := sealed(t, stores, snap, sp, fmt.Sprintf("mem://native-%d.spt", to))
		judgeNative(t, fmt.Sprint("native to ", to), plan, snap, out, &n)
		if d := cmp.Diff(before, nativeEntries(t, out)); d != "" {
			t.Errorf("to %d: entries before (-) and after (+):\n%s", to, d)
		}
		for _, s := range out.Operators[0].Subtasks {
			h := s.ManagedKeyed.(*format.KeyGroups)
			if want := format.KeyGroupsOf(s.Index, to, max); h.Range != want {
				t.Errorf("to %d: subtask %d holds key groups %v, not %v", to, s.Index, h.Range, want)
			}
		}
		// And back again.
		back, err := PlanRescale(t.Context(), out.View(), RescaleOptions{To: p})
		check(err)
		sp, err = back.Apply(t.Context())
		check(err)
		again := sealed(t, stores, out, sp, fmt.Sprintf("mem://native-%d-back.spt", to))
		if d := cmp.Diff(before, nativeEntries(t, again)); d != "" {
			t.Errorf("to %d and back: entries before (-) and after (+):\n%s", to, d)
		}
	}
	t.Logf("%d states with %d elements", n.states, n.elements)
}

func judgeNative(t *testing.T, where string, plan *RescalePlan, from, out *reader.Snapshot, n *applied) {
	t.Helper()
	keyed := plan.Operators[0].Keyed
	plan.Operators[0].Keyed = nil // read by nativeEntries
	judgeApplied(t, where, plan, from, out, n)
	plan.Operators[0].Keyed = keyed
}

// nativeEntries is all keyed entries, and that each lies in its key group.
func nativeEntries(t *testing.T, snap *reader.Snapshot) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range snap.Operators[0].Subtasks {
		h, ok := s.ManagedKeyed.(*format.KeyGroups)
		if !ok {
			continue
		}
		cur, err := native.KeyedCodec{}.Entries(t.Context(), snap.Source(), h, format.KeyedSelection{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			e, err := cur.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprintf("%d %x %x", e.State, e.Key, e.Namespace)
			if _, twice := all[key]; twice || e.KeyGroup != native.KeyGroup(e.Key, snap.Operators[0].MaxParallelism) {
				t.Errorf("%s in key group %d, twice: %t", key, e.KeyGroup, twice)
			}
			all[key] = fmt.Sprintf("%d %x", e.KeyGroup, e.Value)
		}
		if err := cur.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(all) != 80 {
		t.Errorf("%d entries, not 80", len(all))
	}
	return all
}
