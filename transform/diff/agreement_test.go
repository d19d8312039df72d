package diff

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// agreementSnapshots are the snapshots of testdata, with state of Flink and of Go
// programs. TestDiffCorpus and TestDiffRescaled are for the corpus.
func agreementSnapshots(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir("../../testdata", func(path string, d fs.DirEntry, err error) error {
		if err == nil && slices.Contains([]string{"examples", "hostile", "claimed-native", "s3-metadata-only", "same-offset-compressed"}, d.Name()) {
			return fs.SkipDir // snapshots that cannot be read whole
		}
		switch {
		case err != nil || d.IsDir():
		case d.Name() == reader.MetadataName:
			all = append(all, filepath.Dir(path))
		case filepath.Ext(path) == ".spt":
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("%d snapshots", len(all))
	}
	return all
}

// TestDiffAgreesWithRescale: rescaled down, up, to an odd number and to as many
// subtasks as there are key groups, a snapshot holds the same elements, keys and
// key groups, before and after it was written as an .spt file.
func TestDiffAgreesWithRescale(t *testing.T) {
	var n struct{ snapshots, rescaled, written, refused, native int }
	var groups, elements int64
	for i, name := range agreementSnapshots(t) {
		stores := sptest.Stores()
		snap := sptest.OpenIn(t, stores, name)
		in := snap.View()
		n.snapshots++
		max := int32(format.MaxKeyGroups)
		for _, op := range in.Operators {
			max = min(max, op.MaxParallelism)
		}
		for _, to := range []int32{1, 3, 7, max} {
			if to > max || to > 1024 {
				continue
			}
			plan, err := transform.PlanRescale(t.Context(), in, transform.RescaleOptions{To: to, Keyed: transform.KeyedLeave})
			if err != nil {
				t.Fatalf("%s to %d: %v", name, to, err)
			}
			sp, err := plan.Apply(t.Context())
			if err != nil {
				n.refused++
				continue
			}
			all := []format.View{sp}
			if n.rescaled++; to == 7 || to == max { // more would take minutes
				target := fmt.Sprintf("mem://agree/%d-%d.spt", i, to)
				if _, err := writer.Write(t.Context(), sp, target, &writer.Options{Stores: stores}); err == nil {
					all = append(all, sptest.OpenIn(t, stores, target).View())
					n.written++
				}
			}
			for k, b := range all {
				d := diffOf(t, in, b, keyedOnly)
				for _, x := range d.Differences {
					if x.State != nil && x.State.New != nil && x.State.New.Kind == "broadcast" && to < x.Operator.old.Parallelism {
						continue // fewer subtasks take over fewer of the maps that differ
					}
					t.Errorf("%s to %d, %d: %q", name, to, k, differences(d))
				}
				for _, op := range d.Operators {
					for _, st := range op.States {
						if st.Keyed != nil {
							groups += st.Keyed.SameGroups
						}
						if st.Elements != nil {
							elements += st.Elements.New
						}
					}
				}
			}
			if slices.ContainsFunc(in.Operators, func(op *format.Operator) bool { return isNativeOperator(op) }) {
				n.native++
			}
		}
	}
	t.Logf("%+v: %d key groups, %d elements are the same", n, groups, elements)
	if n.rescaled < 150 || n.written < 80 || n.native < 8 || groups < 5000 || elements < 5000 {
		t.Error("too few")
	}
}

func isNativeOperator(op *format.Operator) bool {
	return slices.ContainsFunc(op.Subtasks, func(s *format.Subtask) bool {
		h, ok := s.ManagedKeyed.(*format.KeyGroups)
		return ok && h.Codec == format.CodecNative || s.Managed != nil && s.Managed.Codec == format.CodecNative
	})
}

// TestOneChangeIsOneDifference: one byte that changed in one element, map, key
// group, coordinator or in-flight record is one difference, of the kind that it
// is of, and so is one stored name, in every state of every snapshot.
func TestOneChangeIsOneDifference(t *testing.T) {
	counts := map[Kind]int{}
	for _, name := range agreementSnapshots(t) {
		snap := sptest.Open(t, name)
		in := snap.View()
		// changed is the snapshot with a byte changed in a stream.
		expect := func(where string, s format.Stream, at int64, kind Kind, text string) {
			t.Helper()
			p := slices.Clone(sptest.Bytes(t, in.Source, s))
			p[at] ^= 1
			out := in
			var err error
			out.Savepoint, err = in.MapStreams(func(_ format.Place, other format.Stream) (format.Stream, error) {
				if other == s {
					return sptest.Inline("changed", string(p)), nil
				}
				return other, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			d := diffOf(t, in, out, Options{Ignore: map[Kind]bool{KindHandles: true}})
			if len(d.Differences) != 1 || d.Differences[0].Kind != kind || !strings.Contains(d.Differences[0].Text, text) {
				t.Errorf("%s, %s: %q, want one of kind %s, %q", name, where, differences(d), kind, text)
			}
			counts[kind]++
		}
		for _, op := range in.Operators {
			if op.Coordinator != nil && op.Coordinator.Size() > 0 {
				expect("coordinator of "+op.Label(), op.Coordinator, 0, KindCoordinator, "state of the coordinator changed")
			}
			if op.Name.String() != "" {
				out := in
				sp, c := *in.Savepoint, *op
				c.Name = format.NewText("another name")
				sp.Operators = slices.Clone(sp.Operators)
				sp.Operators[slices.Index(sp.Operators, op)] = &c
				out.Savepoint = &sp
				if d := differences(diffOf(t, in, out, Options{})); len(d) != 1 || !strings.HasPrefix(d[0], "names: ") {
					t.Errorf("%s, name of %s: %q", name, op.Label(), d)
				}
				counts[KindNames]++
			}
			subs := op.Subtasks
			if len(subs) > 2 {
				subs = []*format.Subtask{subs[0], subs[len(subs)-1]}
			}
			for _, sub := range subs {
				for _, raw := range []bool{false, true} {
					h := operatorHandle(sub, raw)
					if h == nil || len(h.States) == 0 {
						continue
					}
					if h.Codec == format.CodecFlink {
						var c opstate.Codec
						if compressed, err := c.Compressed(t.Context(), in.Source, h); err != nil || compressed {
							continue // a byte of a frame would break it
						}
					}
					for k, st := range h.States {
						values := sptest.Elements(t, in, h, st.Name.String())
						i := slices.IndexFunc(values, func(v string) bool { return v != "" })
						if i < 0 {
							continue
						}
						off := sptest.OffsetsOf(t, h.States[k].Offsets)[i]
						kind, text := KindElements, "elements: 1 added, 1 removed"
						switch {
						case st.Mode == format.ModeBroadcast:
							text = "different maps: 1 added"
						case connector.IsPositions(st.Name.String()) && st.Mode == format.ModeList && !raw:
							kind = KindOffsets
						}
						// The last byte of an element is not one of its lengths.
						expect(fmt.Sprintf("%s/%s of subtask %d", op.Label(), st.Name, sub.Index), h.Data, off+int64(len(values[i]))-1, kind, text)
					}
				}
				for _, keyed := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
					h, full := keyed.(*format.KeyGroups)
					if !full {
						continue
					}
					data, last := sptest.Bytes(t, in.Source, h.Data), int64(-1)
					err := h.EachKeyGroup(t.Context(), func(_ int32, at int64) error {
						if at < int64(len(data)) {
							last = at
						}
						return nil
					})
					if err != nil {
						t.Fatal(err)
					}
					if last >= 0 {
						expect(fmt.Sprintf("keyed state of %s, subtask %d", op.Label(), sub.Index), h.Data, int64(len(data))-1, KindKeyed, ": 1 ")
					}
				}
				for _, handles := range [][]*format.ChannelHandle{sub.Input, sub.Output} {
					if len(handles) > 0 && format.SizeOf(handles[0].Data) > 0 {
						expect("channels of "+op.Label(), handles[0].Data, 0, KindInFlight, "in-flight data changed")
						break
					}
				}
			}
		}
	}
	t.Logf("one difference for one change: %v", counts)
	for _, kind := range []Kind{KindElements, KindOffsets, KindKeyed, KindCoordinator, KindNames, KindInFlight} {
		if counts[kind] < 4 {
			t.Errorf("%d of kind %s", counts[kind], kind)
		}
	}
}
