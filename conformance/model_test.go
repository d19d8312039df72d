package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// spt's model of a _metadata file is what Flink's own reader sees in it, handle
// by handle.
func TestModel(t *testing.T) {
	eachCase(t, func(t *testing.T, f *Flink, _ snapshotCase, s Snapshot) {
		judgeModel(t, f, s, opened(t, s))
	})
}

// The same for the known corpus, and against what its maker's reader saw.
func TestModelOfKnownCorpus(t *testing.T) {
	for _, folder := range testenv.KnownDirectories(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			s, err := OpenSnapshot(folder)
			if err != nil {
				t.Fatal(err)
			}
			var want Metadata
			if err := readJSON(filepath.Join(folder, "metadata.json"), &want); err != nil {
				t.Fatal(err)
			}
			if diff := DiffMetadata(inOneOrder(t, want), metadataOf(t, opened(t, s))); diff != "" {
				t.Errorf("the model differs (-Flink +spt):\n%s", diff)
			}
		})
	}
}

// Snapshots that Flink 1.3 and later wrote, and those of testdata, as Flink 2.3
// reads them.
func TestModelOfOlderSnapshots(t *testing.T) {
	f := Use(t, V2_3)
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	folders, err := filepath.Glob(filepath.Join(root, "testdata", "savepoints", "sp-*", "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	ours := len(folders)
	if ours == 0 {
		t.Fatal("no snapshot in testdata/savepoints")
	}
	for _, kind := range []string{"savepoints", "sql"} {
		more, err := filepath.Glob(filepath.Join(testenv.CorpusDir(t), kind, "*", "_metadata"))
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, more...)
	}
	if len(folders) == ours {
		fmt.Fprintln(os.Stderr, "CONFORMANCE IS NOT TESTED on older snapshots: SPT_CORPUS names none")
	}
	at := newDirectory()
	compared, refused := 0, 0
	for _, file := range folders {
		dir := t.TempDir() // the description alone: Flink does not look at the other files for this
		if err := copyFile(file, filepath.Join(dir, reader.MetadataName)); err != nil {
			t.Fatal(err)
		}
		s := Snapshot{Dir: dir, Path: ".", At: at}
		want, err := f.Metadata(s)
		var no *RefusedError
		if errors.As(err, &no) {
			refused++
			t.Logf("%s: Flink %s refuses it: %s", filepath.Base(filepath.Dir(file)), f.Version(), no.Cause)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		compared++
		if diff := DiffMetadata(inOneOrder(t, want), metadataOf(t, opened(t, s))); diff != "" {
			t.Errorf("%s: the model differs (-Flink +spt):\n%s", filepath.Base(filepath.Dir(file)), diff)
		}
	}
	t.Logf("compared %d models with what Flink %s reads; it refuses %d", compared, f.Version(), refused)
}

// judgeModel compares what spt and Flink read from the same _metadata.
func judgeModel(t *testing.T, f *Flink, s Snapshot, snap *reader.Snapshot) {
	t.Helper()
	want, err := f.Metadata(s)
	if err != nil {
		t.Fatal(explain(err))
	}
	if diff := DiffMetadata(inOneOrder(t, want), metadataOf(t, snap)); diff != "" {
		t.Errorf("the model of _metadata differs (-Flink +spt):\n%s", diff)
	}
}

// inOneOrder sorts the states of operator handles by name: Flink reads them
// into a hash map.
func inOneOrder(t *testing.T, m Metadata) Metadata {
	t.Helper()
	for _, op := range m.Operators {
		for _, sub := range op.Subtasks {
			for _, handles := range [][]Value{sub.ManagedOperator, sub.RawOperator} {
				for i, h := range handles {
					var fields map[string]any
					decoder := json.NewDecoder(strings.NewReader(string(h)))
					decoder.UseNumber()
					if err := decoder.Decode(&fields); err != nil {
						t.Fatal(err)
					}
					states, _ := fields["states"].([]any)
					slices.SortFunc(states, func(a, b any) int {
						return cmp.Compare(fmt.Sprint(a.(map[string]any)["name"]), fmt.Sprint(b.(map[string]any)["name"]))
					})
					handles[i] = jsonValue(t, fields)
				}
			}
		}
	}
	return m
}

// object is a JSON object.
type object map[string]any

// jsonValue is v as text in its one form.
func jsonValue(t *testing.T, v any) Value {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var value Value
	if err := value.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return value
}

// metadataOf shows spt's model as MetadataDump.java shows Flink's.
func metadataOf(t *testing.T, snap *reader.Snapshot) Metadata {
	t.Helper()
	m := Metadata{CheckpointID: snap.ID, Size: snap.Container.Size}
	for _, op := range snap.Operators {
		shown := MetadataOperator{
			ID:             op.ID.String(),
			Parallelism:    int(op.Parallelism),
			MaxParallelism: int(op.MaxParallelism),
			Subtasks:       map[string]MetadataSubtask{},
		}
		if op.Coordinator != nil {
			n := op.Coordinator.Size()
			shown.CoordinatorBytes = &n
		}
		for _, sub := range op.Subtasks {
			var s MetadataSubtask
			s.ManagedOperator = operatorView(t, sub.Managed)
			s.RawOperator = operatorView(t, sub.Raw)
			if sub.ManagedKeyed != nil {
				s.ManagedKeyed = []Value{jsonValue(t, keyedView(t, sub.ManagedKeyed))}
			}
			if sub.RawKeyed != nil {
				s.RawKeyed = []Value{jsonValue(t, keyedView(t, sub.RawKeyed))}
			}
			s.InputChannel = channelView(t, sub.Input, "InputChannelStateHandle")
			s.ResultSubpartition = channelView(t, sub.Output, "ResultSubpartitionStateHandle")
			shown.Subtasks[strconv.Itoa(int(sub.Index))] = s
		}
		m.Operators = append(m.Operators, shown)
	}
	return m
}

func operatorView(t *testing.T, h *format.OperatorHandle) []Value {
	t.Helper()
	if h == nil {
		return nil
	}
	class := "OperatorStreamStateHandle"
	switch {
	case h.Merging != nil && h.Merging.Placeholder:
		class = "EmptyFileMergingOperatorStreamStateHandle"
	case h.Merging != nil:
		class = "FileMergingOperatorStreamStateHandle"
	}
	modes := map[format.Mode]string{format.ModeList: "SPLIT_DISTRIBUTE", format.ModeUnion: "UNION", format.ModeBroadcast: "BROADCAST"}
	states := []object{}
	for _, st := range h.States {
		states = append(states, object{"name": st.Name.String(), "mode": modes[st.Mode], "offsets": offsetsView(t, st.Offsets)})
	}
	slices.SortFunc(states, func(a, b object) int { return cmp.Compare(a["name"].(string), b["name"].(string)) })
	return []Value{jsonValue(t, object{"class": class, "states": states, "stream": streamView(t, h.Data)})}
}

func offsetsView(t *testing.T, o format.Offsets) []int64 {
	t.Helper()
	all := []int64{}
	err := format.EachOffset(context.Background(), o, func(_ int64, run []int64) error {
		all = append(all, run...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func keyedView(t *testing.T, h format.KeyedHandle) object {
	t.Helper()
	r := h.KeyGroups()
	view := object{"key_groups": []int32{r.First, r.First + r.Count - 1}}
	switch h := h.(type) {
	case *format.KeyGroups:
		view["class"] = "KeyGroupsStateHandle"
		if h.Savepoint {
			view["class"] = "KeyGroupsSavepointStateHandle"
		}
		view["size"] = h.Data.Size()
		view["offsets"] = offsetsView(t, h.Offsets)
		view["stream"] = streamView(t, h.Data)
	case *format.Incremental:
		view["class"] = "IncrementalRemoteKeyedStateHandle"
		size := h.Meta.Size()
		files := func(all []format.NamedStream) []object {
			shown := []object{}
			for _, file := range all {
				shown = append(shown, object{"local_path": file.Name.String(), "stream": streamView(t, file.Data)})
				size += file.Data.Size()
			}
			return shown
		}
		view["checkpoint_id"] = h.CheckpointID
		view["meta"] = streamView(t, h.Meta)
		view["shared"] = files(h.Shared)
		view["private"] = files(h.Private)
		view["size"] = size
	case *format.Changelog:
		view["class"] = "ChangelogStateBackendHandleImpl"
		var size int64
		several := func(all []format.KeyedHandle) []object {
			shown := []object{}
			for _, one := range all {
				o := keyedView(t, one)
				size += o["size"].(int64)
				shown = append(shown, o)
			}
			return shown
		}
		view["materialized"] = several(h.Materialized)
		view["changes"] = several(h.Changes)
		view["size"] = size
	case *format.ChangelogMemory:
		view["class"] = "InMemoryChangelogStateHandle"
		var size int64
		for _, change := range h.Changes {
			size += int64(change.Data.Len())
		}
		view["size"] = size
	case *format.ChangelogStream:
		view["class"] = "ChangelogStateHandleStreamImpl"
		view["size"] = h.StateSize
	default:
		t.Fatalf("a keyed handle of the type %T", h)
	}
	return view
}

func channelView(t *testing.T, handles []*format.ChannelHandle, class string) []Value {
	t.Helper()
	var all []Value
	for _, h := range handles {
		name := class
		if h.Merged {
			name = "Merged" + class
		}
		all = append(all, jsonValue(t, object{"class": name, "size": h.Size}))
	}
	return all
}

func streamView(t *testing.T, s format.Stream) object {
	t.Helper()
	switch s := s.(type) {
	case *format.Inline:
		return object{"class": "ByteStreamStateHandle", "size": s.Size(), "name": s.Name.String()}
	case *format.File:
		class := "FileStateHandle"
		if s.Relative {
			class = "RelativeFileStateHandle"
		}
		return object{"class": class, "size": s.Length, "path": s.Path.String()}
	case *format.Segment:
		return object{
			"class": "SegmentFileStateHandle", "size": s.Length,
			"text": fmt.Sprintf("Segment File State: %s [Starting Position: %d, %d bytes]", s.Path, s.Start, s.Length),
		}
	case *format.EmptySegment:
		return object{"class": "EmptySegmentFileStateHandle", "size": 0, "text": "Segment File State: empty [Starting Position: 0, 0 bytes]"}
	}
	t.Fatalf("a stream of the type %T", s)
	return nil
}
