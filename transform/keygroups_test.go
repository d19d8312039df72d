package transform

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// rescaled gives header, key groups and offsets of each new subtask, groups by
// the test's own reading: each to the next one with data.
func rescaled(t *testing.T, in format.View, to int32) (all []string, err error) {
	t.Helper()
	sp, err := plan(t, in, RescaleOptions{To: to}).Apply(t.Context())
	if err != nil {
		if sp.Savepoint != in.Savepoint {
			t.Error("a refusal left a savepoint")
		}
		return nil, err
	}
	for _, s := range sp.Operators[0].Subtasks {
		h, ok := s.ManagedKeyed.(*format.KeyGroups)
		if !ok {
			all = append(all, fmt.Sprintf("%T", s.ManagedKeyed))
			continue
		}
		data, offs := sptest.Bytes(t, in.Source, h.Data), sptest.OffsetsOf(t, h.Offsets)
		starts := slices.DeleteFunc(slices.Clone(offs), func(o int64) bool { return o == 0 })
		header := string(data)
		if len(starts) > 0 {
			header = string(data[:starts[0]])
		}
		text := fmt.Sprintf("%s %s", h.Range, header)
		for i, off := range offs {
			end := int64(len(data))
			for _, o := range offs[i+1:] {
				if o > 0 {
					end = o
					break
				}
			}
			if off == 0 {
				text += "|none"
			} else {
				text += "|" + string(data[off:end])
			}
		}
		all = append(all, text)
	}
	return all, nil
}

// TestMergeKeyGroups: narrowing, merging and both, with key groups without data
// at both ends and in the middle, in every kind of full stream.
func TestMergeKeyGroups(t *testing.T) {
	for name, c := range map[string]struct {
		savepoint bool
		codec     format.CodecID
		none      string
	}{"canonical": {true, format.CodecFlink, "none"}, "heap native": {false, format.CodecFlink, ""}, "native": {false, format.CodecNative, ""}} {
		a := sptest.KeyGroupStream(c.savepoint, c.codec, "HEAD", 0, "", "bb", "", "dd", "")
		b := sptest.KeyGroupStream(c.savepoint, c.codec, "HEAD", 5, "", "gggg", "h", "", "")
		in := sptest.View(sptest.KeyedOperator(10, a, b))
		full := []string{c.none, "bb", c.none, "dd", c.none, c.none, "gggg", "h", c.none, c.none}
		for to := int32(1); to <= 10; to++ {
			got, err := rescaled(t, in, to)
			if err != nil {
				t.Fatalf("%s to %d: %v", name, to, err)
			}
			var want []string
			for i := range to {
				r := format.KeyGroupsOf(i, to, 10)
				want = append(want, fmt.Sprintf("%s HEAD|%s", r, strings.Join(full[r.First:r.First+r.Count], "|")))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s to %d:\n%s", name, to, d)
			}
		}
	}
}

// TestOldFullStreams: before 1.13 RocksDB wrote full streams that are no
// savepoint handles, with offset 0 for groups without data. The header was lost
// where the first group was one.
func TestOldFullStreams(t *testing.T) {
	a := sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, "", "", "c", "d")
	b := sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 4, "", "f", "", "")
	a.Savepoint, b.Savepoint = false, false
	got, err := rescaled(t, sptest.View(sptest.KeyedOperator(8, a, b)), 1)
	if want := []string{"0–7 HEAD|none|none|c|d|none|f|none|none"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: %v", got, err)
	}
}

// TestSharedStream: handles that name some key groups each of one stream, as
// other tools write them, are cut where the groups of the others start.
func TestSharedStream(t *testing.T) {
	all := sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, "a", "b", "", "d", "e", "f")
	window := func(first, n int32) *format.KeyGroups {
		h := *all
		h.Range = format.KeyGroupRange{First: first, Count: n}
		h.Offsets = all.Offsets.(format.OffsetSlice)[first : first+n]
		return &h
	}
	in := sptest.View(sptest.KeyedOperator(6, window(0, 2), window(2, 2), window(4, 2)))
	for to, want := range map[int32][]string{
		1: {"0–5 HEAD|a|b|none|d|e|f"},
		2: {"0–2 HEAD|a|b|none", "3–5 HEAD|d|e|f"},
		6: {"0 HEAD|a", "1 HEAD|b", "2 HEAD|none", "3 HEAD|d", "4 HEAD|e", "5 HEAD|f"},
	} {
		got, err := rescaled(t, in, to)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("to %d: %v\n%s", to, err, d)
		}
	}
}

// TestMergeRefused: what cannot be merged is refused as a whole, with operator
// and reason; with KeyedLeave the operator stays as it is.
func TestMergeRefused(t *testing.T) {
	full := func(header string, first int32) *format.KeyGroups {
		return sptest.KeyGroupStream(true, format.CodecFlink, header, first, "a", "b")
	}
	native := sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 2, "c", "d")
	unsorted := full("HEAD", 2)
	unsorted.Offsets = format.OffsetSlice{5, 4}
	short := full("HEAD", 2)
	short.Offsets = format.OffsetSlice{4}
	beyond := full("HEAD", 2)
	beyond.Offsets = format.OffsetSlice{4, 400}
	negative := full("HEAD", 2)
	negative.Offsets = format.OffsetSlice{-4, 5}
	for name, c := range map[string]struct {
		handles []format.KeyedHandle
		kind    error
		want    string
		leave   bool
	}{
		"headers":     {[]format.KeyedHandle{full("HEAD", 0), full("HEAT", 2)}, format.ErrUnsupported, "different serializer snapshots of keyed state", true},
		"kinds":       {[]format.KeyedHandle{full("HEAD", 0), native}, format.ErrUnsupported, "different kinds", true},
		"unsorted":    {[]format.KeyedHandle{full("HEAD", 0), unsorted}, format.ErrUnsupported, "key group 3 starts before its predecessor", true},
		"short":       {[]format.KeyedHandle{full("HEAD", 0), short}, format.ErrCorrupt, "1 offsets for 2 key groups", false},
		"beyond":      {[]format.KeyedHandle{full("HEAD", 0), beyond}, format.ErrCorrupt, "starts at 400 and ends at 6 in a stream of 6 bytes", false},
		"negative":    {[]format.KeyedHandle{full("HEAD", 0), negative}, format.ErrCorrupt, "starts at -4 in a stream of 6", false},
		"gap":         {[]format.KeyedHandle{full("HEAD", 0), full("HEAD", 3)}, format.ErrUnsupported, "leave a gap", true},
		"overlap":     {[]format.KeyedHandle{full("HEAD", 0), full("HEAD", 1)}, format.ErrUnsupported, "overlap", true},
		"incremental": {[]format.KeyedHandle{&format.Incremental{Range: format.KeyGroupRange{Count: 2}}, &format.Incremental{Range: format.KeyGroupRange{First: 2, Count: 2}}}, format.ErrUnsupported, "old subtasks 0 and 1", true},
	} {
		op := sptest.KeyedOperator(5, c.handles...)
		in := sptest.View(sptest.Operator("other", nativeHandle("h", st{"s", format.ModeList, chars("ab")})), op)
		p := plan(t, in, RescaleOptions{To: 1})
		sp, err := p.Apply(t.Context())
		if sp.Savepoint != in.Savepoint || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `operator "keyed"`) {
			t.Errorf("%s: %v", name, err)
		}
		p = plan(t, in, RescaleOptions{To: 1, Keyed: KeyedLeave})
		sp, err = p.Apply(t.Context())
		if !c.leave {
			if !errors.Is(err, c.kind) {
				t.Errorf("%s, left: %v", name, err)
			}
			continue
		}
		if err != nil || sp.Operators[1] != op || p.Operators[1].Left == "" || p.Operators[1].To != 2 {
			t.Errorf("%s, left: %v", name, err)
		}
	}
}

// TestRawKeyed: raw keyed state has no header, so it is never cut nor merged;
// one old handle for each new subtask is all there can be. Raw inline state
// crashed here.
func TestRawKeyed(t *testing.T) {
	op := sptest.Operator("raw", nil)
	op.MaxParallelism = 4
	h := sptest.KeyGroupStream(false, format.CodecRaw, "", 0, "a", "b", "c", "d")
	op.Subtasks[0].RawKeyed = h
	sp, err := plan(t, sptest.View(op), RescaleOptions{To: 2}).Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sp.Operators[0].Subtasks {
		got := s.RawKeyed.(*format.KeyGroups)
		if got.Data != h.Data || got.Range != (format.KeyGroupRange{First: int32(2 * i), Count: 2}) || !slices.Equal(sptest.OffsetsOf(t, got.Offsets), []int64{int64(2 * i), int64(2*i + 1)}) {
			t.Errorf("subtask %d: %+v", i, got)
		}
	}
	two := sptest.Operator("raw", nil, nil)
	two.MaxParallelism = 4
	two.Subtasks[0].RawKeyed = sptest.KeyGroupStream(false, format.CodecRaw, "", 0, "a", "b")
	two.Subtasks[1].RawKeyed = sptest.KeyGroupStream(false, format.CodecRaw, "", 2, "c", "d")
	if _, err := plan(t, sptest.View(two), RescaleOptions{To: 1}).Apply(t.Context()); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "only full streams") {
		t.Errorf("two raw handles for one subtask: %v", err)
	}
}

// fullKeyed reports whether the corpus has a known snapshot with keyed state in
// full streams.
func fullKeyed(t *testing.T) bool {
	t.Helper()
	return slices.ContainsFunc(testenv.KnownSnapshots(t), func(k testenv.KnownSnapshot) bool {
		o := k.Options
		return (o.Shape == "keyed" || o.Shape == "counts") && !o.Changelog && !o.Unaligned && (o.Backend == "hashmap" || o.Format == "canonical" && !o.Checkpoint)
	})
}

// TestHeadersKnowNoKeyGroups: in the streams of real Flink, what stands before
// the first key group is the same in all subtasks of an operator, whatever key
// groups they hold: so streams can be merged.
func TestHeadersKnowNoKeyGroups(t *testing.T) {
	operators, handles := 0, 0
	for _, k := range testenv.KnownSnapshots(t) {
		snap := sptest.Open(t, k.Location)
		for _, op := range snap.Operators {
			var header []byte
			n := 0
			for _, s := range op.Subtasks {
				h, ok := s.ManagedKeyed.(*format.KeyGroups)
				if !ok {
					continue
				}
				data, mine := sptest.Bytes(t, snap.Source(), h.Data), int64(-1)
				for _, o := range sptest.OffsetsOf(t, h.Offsets) {
					if o > 0 && mine < 0 {
						mine = o
					}
				}
				if mine < 0 {
					mine = int64(len(data))
				}
				if n++; n > 1 && !bytes.Equal(header, data[:mine]) {
					t.Errorf("%s, %s, subtask %d: another header", k.Name, op.Label(), s.Index)
				}
				header = data[:mine]
			}
			if n > 1 {
				operators++
				handles += n
			}
		}
	}
	t.Logf("%d operators with %d full handles have one header each", operators, handles)
	testenv.Some(t, "operators with full keyed state in several subtasks", operators, fullKeyed(t))
}
