package metadata_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// knows is the table of spec flink-metadata 3.1: the version of a release, and
// the tags of keyed handles that it reads.
func knows(r flink.Release) (version byte, tags string) {
	major, minor := number(r)
	switch {
	case major == 2 && minor > 0:
		version = 6
	case major == 2:
		version = 5
	case minor >= 16:
		version = 4
	case minor >= 11:
		version = 3
	default:
		version = 2
	}
	tags = "\x03\x05"
	for _, since := range []struct {
		minor int
		tags  string
	}{{13, "\x07"}, {14, "\x08\x09\x0a"}, {15, "\x0b\x0c"}, {16, "\x0d\x0e"}} {
		if major == 2 || minor >= since.minor {
			tags += since.tags
		}
	}
	return version, tags
}

func number(r flink.Release) (major, minor int) {
	if _, err := fmt.Sscanf(r.String(), "%d.%d", &major, &minor); err != nil {
		panic(err)
	}
	return major, minor
}

// TestForReleaseCorpus: every real snapshot, for every release, is refused or
// becomes a file of its version, with tags it knows, that reads back as it was
// but for what was said to be lost.
func TestForReleaseCorpus(t *testing.T) {
	testenv.Long(t, "encodes the corpus for each release in one goroutine")
	dirs := testenv.Snapshots(t)
	written, refused := 0, 0
	for _, dir := range dirs {
		path := filepath.Join(dir, "_metadata")
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		before := written
		for _, r := range flink.Releases() {
			was, _ := encode(sp)
			out, lost, err := metadata.ForRelease(sp, r)
			var got []byte
			if err == nil {
				got, err = encode(out)
			}
			if again, _ := encode(sp); string(again) != string(was) {
				t.Fatalf("%s for %v: the input changed", path, r)
			}
			if errors.Is(err, format.ErrUnsupported) {
				refused++
				continue
			}
			if err != nil {
				t.Errorf("%s for %v: %v", path, r, err)
				continue
			}
			written++
			version, tags := knows(r)
			if got[7] != version {
				t.Errorf("%s for %v: version %d", path, r, got[7])
			}
			back, err := metadata.Decode(format.NewBytes(got), metadata.Options{})
			if err != nil {
				t.Errorf("%s for %v: %v", path, r, err)
				continue
			}
			checkTags(t, fmt.Sprintf("%s for %v", path, r), back, tags)
			if len(lost) == 0 && metadata.Version(file[7]) < metadata.V6 && version >= 4 && file[7] >= 4 {
				if d := cmp.Diff(sp, back, sameModel); d != "" {
					t.Errorf("%s for %v: nothing was lost, and\n%s", path, r, d)
				}
			}
			if len(lost) > 0 && version >= 5 {
				t.Errorf("%s for %v: lost %q", path, r, lost)
			}
			for i, op := range sp.Operators {
				if o := back.Operators[i]; o.ID != op.ID || o.Parallelism != op.Parallelism || o.MaxParallelism != op.MaxParallelism || len(o.Subtasks) != len(op.Subtasks) {
					t.Errorf("%s for %v: operator %v is another", path, r, op.ID)
				}
			}
		}
		if written == before {
			t.Errorf("%s: refused for every release", path)
		}
	}
	testenv.Found(t, "files written or refused", written+refused, len(dirs)*len(flink.Releases()))
	t.Logf("%d written, %d refused", written, refused)
}

func checkTags(t *testing.T, what string, sp *format.Savepoint, tags string) {
	t.Helper()
	var check func(h format.KeyedHandle)
	check = func(h format.KeyedHandle) {
		var w format.Wire
		switch h := h.(type) {
		case nil:
			return
		case *format.KeyGroups:
			w = h.Wire
		case *format.Incremental:
			w = h.Wire
		case *format.Changelog:
			w = h.Wire
			for _, inner := range slices.Concat(h.Materialized, h.Changes) {
				check(inner)
			}
		case *format.ChangelogMemory:
			w = h.Wire
		case *format.ChangelogStream:
			w = h.Wire
		}
		if !strings.Contains(tags, string(w[0])) {
			t.Errorf("%s: a handle of tag %d", what, w[0])
		}
	}
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			check(sub.ManagedKeyed)
			check(sub.RawKeyed)
		}
	}
}

// TestForReleaseNames: names and uids go before 2.0, counted, and only then.
func TestForReleaseNames(t *testing.T) {
	sp := &format.Savepoint{Operators: []*format.Operator{
		{UID: format.NewText("a"), Parallelism: 1, MaxParallelism: 128},
		{Name: format.NewText("b"), ID: format.OperatorID{1}, Parallelism: 1, MaxParallelism: 128},
		{ID: format.OperatorID{2}, Parallelism: 1, MaxParallelism: 128},
	}}
	out, lost, err := metadata.ForRelease(sp, flink.MustRelease("1.20"))
	if err != nil || !slices.Equal(lost, []string{"name and uid of 2 operators"}) {
		t.Errorf("%q, %v", lost, err)
	}
	if out.Operators[2] != sp.Operators[2] || out.Operators[0].Label() != sp.Operators[0].ID.Short() || sp.Operators[0].UID.String() != "a" {
		t.Error("the wrong operators changed")
	}
	if out, lost, err = metadata.ForRelease(sp, flink.MustRelease("2.0")); err != nil || len(lost) > 0 || out.Operators[0] != sp.Operators[0] {
		t.Errorf("2.0: %q, %v", lost, err)
	}
	if again, lost, err := metadata.ForRelease(out, flink.MustRelease("2.0")); again != out || len(lost) > 0 || err != nil {
		t.Errorf("the same release gives another savepoint: %q, %v", lost, err)
	}
}

// TestForReleaseKind: what kind of snapshot it is goes before 1.16, and does not
// come back.
func TestForReleaseKind(t *testing.T) {
	sp := &format.Savepoint{Kind: format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatNative}}
	v4, err := metadata.WithVersion(sp, metadata.V4)
	if err != nil {
		t.Fatal(err)
	}
	out, lost, err := metadata.ForRelease(v4, flink.MustRelease("1.15"))
	if err != nil || !slices.Equal(lost, []string{"the kind of snapshot"}) || out.Kind != (format.SnapshotKind{}) || v4.Kind != sp.Kind {
		t.Fatalf("%v, lost %q, %v", out.Kind, lost, err)
	}
	back, lost, err := metadata.ForRelease(out, flink.MustRelease("1.20"))
	if err != nil || len(lost) > 0 {
		t.Fatalf("lost %q, %v", lost, err)
	}
	if file, err := encode(back); err != nil || !strings.HasSuffix(string(file), nullTail) {
		t.Errorf("%x, %v", file, err)
	}
	if out, _, _ := metadata.ForRelease(v4, flink.MustRelease("2.3")); out.Kind != sp.Kind {
		t.Errorf("%v", out.Kind)
	}
}

// TestForReleaseKeyed: newer tags become those of 1.14, and what they do not hold
// is counted.
func TestForReleaseKeyed(t *testing.T) {
	data := &format.Inline{Name: format.NewText("x"), Data: format.NewBytes([]byte("data"))}
	groups := &format.KeyGroups{Range: format.KeyGroupRange{Count: 1}, Offsets: format.OffsetSlice{0}, Data: data, HandleID: format.NewText("id")}
	inc := &format.Incremental{CheckpointID: 7, BackendID: format.NewText("b"), Range: format.KeyGroupRange{First: 1, Count: 1}, CheckpointedSize: 99, Meta: data, HandleID: format.NewText("id2")}
	sp := &format.Savepoint{Operators: []*format.Operator{{Parallelism: 2, MaxParallelism: 2, Subtasks: []*format.Subtask{{ManagedKeyed: groups}, {Index: 1, ManagedKeyed: inc}}}}}
	out, lost, err := metadata.ForRelease(sp, flink.MustRelease("1.14"))
	if err != nil || !slices.Equal(lost, []string{"the handle id of 2 keyed handles", "the checkpointed size of 1 keyed handle"}) {
		t.Fatalf("%q, %v", lost, err)
	}
	file, err := encode(out)
	if err != nil {
		t.Fatal(err)
	}
	back := roundTrip(t, file)
	g, i := back.Operators[0].Subtasks[0].ManagedKeyed.(*format.KeyGroups), back.Operators[0].Subtasks[1].ManagedKeyed.(*format.Incremental)
	if g.Wire != "\x03" || g.HandleID.String() != "" || i.Wire != "\x05" || i.CheckpointedSize != -1 || i.CheckpointID != 7 || g.Range != groups.Range {
		t.Errorf("%+v, %+v", g, i)
	}
	if groups.HandleID.String() != "id" || inc.CheckpointedSize != 99 {
		t.Error("the input changed")
	}
	if out, _, err := metadata.ForRelease(sp, flink.MustRelease("1.15")); err != nil || out.Operators[0] != sp.Operators[0] {
		t.Errorf("1.15 changes handles, %v", err)
	}
}

// TestForReleaseMergedChannels: one handle of several channels becomes one for
// each, on the same stream.
func TestForReleaseMergedChannels(t *testing.T) {
	data := &format.Inline{Name: format.NewText("x"), Data: format.NewBytes(make([]byte, 30))}
	plain := &format.ChannelHandle{Subtask: 1, Channels: []format.Channel{{Second: 5, Size: 3, Offsets: format.OffsetSlice{0}}}, Size: 3, Data: data}
	merged := &format.ChannelHandle{Subtask: 1, Merged: true, Size: 10, Data: data, Channels: []format.Channel{
		{First: 0, Second: 1, Size: 4, Offsets: format.OffsetSlice{0, 2}}, {First: 1, Second: 2, Size: 6, Offsets: format.OffsetSlice{4}}}}
	sp := &format.Savepoint{Operators: []*format.Operator{{Parallelism: 2, MaxParallelism: 2, Subtasks: []*format.Subtask{{Index: 1, Input: []*format.ChannelHandle{plain, merged}, Output: []*format.ChannelHandle{plain}}}}}}
	out, lost, err := metadata.ForRelease(sp, flink.MustRelease("1.20"))
	if err != nil || len(lost) > 0 {
		t.Fatalf("%q, %v", lost, err)
	}
	file, err := encode(out)
	if err != nil {
		t.Fatal(err)
	}
	sub := roundTrip(t, file).Operators[0].Subtasks[0]
	var got []string
	for _, h := range sub.Input {
		got = append(got, fmt.Sprint(h.Subtask, h.Merged, h.Channels[0].First, h.Channels[0].Second, h.Channels[0].Size, offsets(h.Channels[0].Offsets)))
	}
	if want := []string{"1 false 0 5 3 [0]", "1 false 0 1 4 [0 2]", "1 false 1 2 6 [4]"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if in := out.Operators[0].Subtasks[0].Input; in[1].Size != 4 || in[2].Size != 6 {
		t.Errorf("sizes %d, %d", in[1].Size, in[2].Size)
	}
	if s := out.Operators[0].Subtasks[0]; s.Output[0] != plain || s.Input[0] != plain || s.Input[1].Data != format.Stream(data) {
		t.Error("what did not change is not shared")
	}
	if _, _, err := metadata.ForRelease(sp, flink.MustRelease("1.11")); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("1.11: %v", err)
	}
	if out, _, _ := metadata.ForRelease(sp, flink.MustRelease("2.1")); out.Operators[0] != sp.Operators[0] {
		t.Error("2.1 splits them")
	}
}

// TestForReleaseRefused: what a release does not know, and a job would miss, is
// refused with the release that brought it.
func TestForReleaseRefused(t *testing.T) {
	data := &format.Inline{Name: format.NewText("x"), Data: format.NewBytes([]byte("data"))}
	op := func(change func(*format.Operator)) *format.Operator {
		o := &format.Operator{Parallelism: 1, MaxParallelism: 1}
		change(o)
		return o
	}
	sub := func(s format.Subtask) *format.Operator {
		return op(func(o *format.Operator) { o.Subtasks = []*format.Subtask{&s} })
	}
	groups := format.KeyGroupRange{Count: 1}
	for _, x := range []struct {
		op   *format.Operator
		from flink.Release // that knows it
		text string
	}{
		{op(func(o *format.Operator) { o.Coordinator = data }), flink.MustRelease("1.11"), "coordinator state"},
		{op(func(o *format.Operator) { o.Finished = true }), flink.MustRelease("1.14"), "fully finished operators"},
		{sub(format.Subtask{Finished: true}), flink.MustRelease("1.14"), "finished subtasks"},
		{sub(format.Subtask{ManagedKeyed: &format.KeyGroups{Savepoint: true, Range: groups, Offsets: format.OffsetSlice{0}, Data: data}}), flink.MustRelease("1.13"), "canonical savepoint format"},
		{sub(format.Subtask{ManagedKeyed: &format.Changelog{Range: groups}}), flink.MustRelease("1.16"), "changelog state"},
		{sub(format.Subtask{ManagedKeyed: &format.Incremental{Range: groups, Meta: data, Shared: []format.NamedStream{{Data: &format.KeyGroupStream{Range: groups, Offsets: format.OffsetSlice{0}, Data: data}}}}}), flink.MustRelease("1.13"), "a key-group handle as a stream"},
	} {
		sp := &format.Savepoint{Operators: []*format.Operator{x.op}}
		for _, r := range flink.Releases() {
			out, _, err := metadata.ForRelease(sp, r)
			if r >= x.from {
				if err == nil {
					_, err = encode(out)
				}
				if err != nil {
					t.Errorf("%s for %v: %v", x.text, r, err)
				}
				continue
			}
			if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), x.text) {
				t.Errorf("%s for %v: %v", x.text, r, err)
			}
		}
	}
}

// TestForReleaseRocksDB: what a snapshot of 2.0 holds in RocksDB's files, also
// under a changelog, is not for 1.x; Flink 1.20 refuses their checksums.
func TestForReleaseRocksDB(t *testing.T) {
	inc := &format.Incremental{Range: format.KeyGroupRange{Count: 1}, Meta: &format.Inline{Name: format.NewText("x")}}
	for _, h := range []format.KeyedHandle{inc, &format.Changelog{Range: inc.Range, Materialized: []format.KeyedHandle{nil, inc}}} {
		sp := &format.Savepoint{Operators: []*format.Operator{{Parallelism: 1, MaxParallelism: 1, Subtasks: []*format.Subtask{{ManagedKeyed: h}}}}}
		for v := metadata.V4; v <= metadata.V6; v++ {
			sp, err := metadata.WithVersion(sp, v)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range flink.Releases() {
				if r < flink.MustRelease("1.16") {
					continue
				}
				if _, _, err := metadata.ForRelease(sp, r); errors.Is(err, format.ErrUnsupported) != (v >= metadata.V5 && r <= flink.MustRelease("1.20")) {
					t.Errorf("%v for %v: %v", v, r, err)
				}
			}
		}
	}
}

// TestHoldsMerged sees segments, also those packed into an .spt, and folders.
func TestHoldsMerged(t *testing.T) {
	with := func(h *format.OperatorHandle) *format.Savepoint {
		return &format.Savepoint{Operators: []*format.Operator{{Subtasks: []*format.Subtask{{Managed: h}}}}}
	}
	for _, h := range []*format.OperatorHandle{{Data: &format.Segment{}}, {Data: &format.Chunks{As: &format.Segment{}}}, {Merging: &format.FileMerging{}}} {
		if !metadata.HoldsMerged(with(h)) {
			t.Errorf("%+v", h)
		}
	}
	if metadata.HoldsMerged(with(&format.OperatorHandle{Data: &format.File{}})) || metadata.HoldsMerged(with(nil)) {
		t.Error("there are none")
	}
}
