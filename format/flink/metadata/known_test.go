package metadata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// The form of metadata.json: a _metadata as Flink's own reader saw it.
type (
	seenFile struct {
		CheckpointID int64          `json:"checkpoint_id"`
		Size         int64          `json:"size"`
		Operators    []seenOperator `json:"operators"`
	}
	seenOperator struct {
		ID               string                 `json:"id"`
		Parallelism      int32                  `json:"parallelism"`
		MaxParallelism   int32                  `json:"max_parallelism"`
		CoordinatorBytes int64                  `json:"coordinator_bytes"`
		Subtasks         map[string]seenSubtask `json:"subtasks"`
	}
	seenSubtask struct {
		ManagedOperator []seenHandle `json:"managed_operator,omitempty"`
		ManagedKeyed    []seenHandle `json:"managed_keyed,omitempty"`
		Input           []seenHandle `json:"input_channel,omitempty"`
		Output          []seenHandle `json:"result_subpartition,omitempty"`
	}
	seenHandle struct {
		Class        string       `json:"class"`
		States       []seenState  `json:"states,omitempty"`
		KeyGroups    []int32      `json:"key_groups,omitempty"`
		Offsets      []int64      `json:"offsets,omitempty"`
		Size         int64        `json:"size"`
		CheckpointID int64        `json:"checkpoint_id"`
		Stream       *seenStream  `json:"stream,omitempty"`
		Meta         *seenStream  `json:"meta,omitempty"`
		Shared       []seenLocal  `json:"shared,omitempty"`
		Private      []seenLocal  `json:"private,omitempty"`
		Materialized []seenHandle `json:"materialized,omitempty"`
		Changes      []seenHandle `json:"changes,omitempty"`
	}
	seenState struct {
		Name    string  `json:"name"`
		Mode    string  `json:"mode"`
		Offsets []int64 `json:"offsets"`
	}
	seenLocal struct {
		LocalPath string      `json:"local_path"`
		Stream    *seenStream `json:"stream"`
	}
	seenStream struct {
		Class string `json:"class"`
		Size  int64  `json:"size"`
		Name  string `json:"name,omitempty"`
		Path  string `json:"path,omitempty"`
		Text  string `json:"text,omitempty"`
	}
)

// TestKnown: what we read is what Flink's own reader reads, on every snapshot
// whose metadata was written down when it was made.
func TestKnown(t *testing.T) {
	handles := 0
	folders := testenv.KnownDirectories(t)
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var want seenFile
			readJSON(t, filepath.Join(folder, "metadata.json"), &want)
			file, err := os.ReadFile(findMetadata(t, folder))
			if err != nil {
				t.Fatal(err)
			}
			sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := seen(sp)
			got.Size = want.Size // the sum of the state, of which metadata is not the judge
			for o := range want.Operators {
				for i, s := range want.Operators[o].Subtasks {
					handles += len(s.ManagedOperator) + len(s.ManagedKeyed) + len(s.Input) + len(s.Output)
					dropSizes(s.ManagedOperator)
					want.Operators[o].Subtasks[i] = s
				}
			}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("Flink (-) and we (+) read differently:\n%s", d)
			}
		})
	}
	fmt.Printf("known: %d snapshots read as Flink reads them, %d handles\n", len(folders), handles)
}

// dropSizes forgets what the report does not have for operator handles.
func dropSizes(all []seenHandle) {
	for i := range all {
		all[i].Size = 0
	}
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	p, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(p, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func findMetadata(t *testing.T, folder string) string {
	t.Helper()
	for _, pattern := range []string{"savepoint/_metadata", "savepoint/*/chk-*/_metadata"} {
		found, _ := filepath.Glob(filepath.Join(folder, filepath.FromSlash(pattern)))
		if len(found) == 1 {
			return found[0]
		}
	}
	t.Fatalf("%s: not one _metadata", folder)
	return ""
}

func seen(sp *format.Savepoint) seenFile {
	f := seenFile{CheckpointID: sp.ID}
	for _, op := range sp.Operators {
		o := seenOperator{ID: op.ID.String(), Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism, Subtasks: map[string]seenSubtask{}}
		o.CoordinatorBytes = format.SizeOf(op.Coordinator)
		for _, s := range op.Subtasks {
			var x seenSubtask
			if s.Managed != nil {
				x.ManagedOperator = []seenHandle{seenOp(s.Managed)}
			}
			if s.ManagedKeyed != nil {
				x.ManagedKeyed = []seenHandle{seenKeyed(s.ManagedKeyed)}
			}
			x.Input = seenChannels(s.Input, "InputChannelStateHandle")
			x.Output = seenChannels(s.Output, "ResultSubpartitionStateHandle")
			o.Subtasks[strconv.Itoa(int(s.Index))] = x
		}
		f.Operators = append(f.Operators, o)
	}
	return f
}

func seenOp(h *format.OperatorHandle) seenHandle {
	x := seenHandle{Class: "OperatorStreamStateHandle", Stream: seenStreamOf(h.Data)}
	if m := h.Merging; m != nil {
		x.Class = "FileMergingOperatorStreamStateHandle"
		if m.Placeholder {
			x.Class = "EmptyFileMergingOperatorStreamStateHandle"
		}
	}
	for _, st := range h.States {
		mode := map[format.Mode]string{format.ModeList: "SPLIT_DISTRIBUTE", format.ModeUnion: "UNION", format.ModeBroadcast: "BROADCAST"}[st.Mode]
		x.States = append(x.States, seenState{Name: st.Name.String(), Mode: mode, Offsets: offsets(st.Offsets)})
	}
	return x
}

func seenChannels(all []*format.ChannelHandle, class string) (out []seenHandle) {
	for _, h := range all {
		x := seenHandle{Class: class, Size: h.Size}
		if h.Merged {
			x.Class = "Merged" + class
		}
		out = append(out, x)
	}
	return out
}

func seenKeyed(h format.KeyedHandle) seenHandle {
	r := h.KeyGroups()
	x := seenHandle{KeyGroups: []int32{r.First, r.Last()}}
	switch h := h.(type) {
	case *format.KeyGroups:
		x.Class = "KeyGroupsStateHandle"
		if h.Savepoint {
			x.Class = "KeyGroupsSavepointStateHandle"
		}
		x.Offsets, x.Stream, x.Size = offsets(h.Offsets), seenStreamOf(h.Data), h.Data.Size()
	case *format.Incremental:
		x.Class, x.CheckpointID, x.Meta = "IncrementalRemoteKeyedStateHandle", h.CheckpointID, seenStreamOf(h.Meta)
		x.Size = h.Meta.Size()
		for _, s := range h.Shared {
			x.Shared = append(x.Shared, seenLocal{s.Name.String(), seenStreamOf(s.Data)})
			x.Size += s.Data.Size()
		}
		for _, s := range h.Private {
			x.Private = append(x.Private, seenLocal{s.Name.String(), seenStreamOf(s.Data)})
			x.Size += s.Data.Size()
		}
	case *format.Changelog:
		x.Class = "ChangelogStateBackendHandleImpl"
		for _, m := range h.Materialized {
			x.Materialized = append(x.Materialized, seenKeyed(m))
			x.Size += x.Materialized[len(x.Materialized)-1].Size
		}
		for _, c := range h.Changes {
			x.Changes = append(x.Changes, seenKeyed(c))
			x.Size += x.Changes[len(x.Changes)-1].Size
		}
	case *format.ChangelogStream:
		x.Class, x.Size = "ChangelogStateHandleStreamImpl", h.StateSize
	}
	return x
}

func seenStreamOf(s format.Stream) *seenStream {
	x := &seenStream{Size: s.Size()}
	switch s := s.(type) {
	case *format.Inline:
		x.Class, x.Name = "ByteStreamStateHandle", s.Name.String()
	case *format.File:
		x.Class, x.Path = "FileStateHandle", s.Path.String()
		if s.Relative {
			x.Class = "RelativeFileStateHandle"
		}
	case *format.Segment:
		x.Class = "SegmentFileStateHandle"
		x.Text = fmt.Sprintf("Segment File State: %s [Starting Position: %d, %d bytes]", s.Path, s.Start, s.Length)
	case *format.EmptySegment:
		x.Class, x.Text = "EmptySegmentFileStateHandle", "Segment File State: empty [Starting Position: 0, 0 bytes]"
	}
	return x
}

func offsets(o format.Offsets) []int64 {
	var all []int64
	if o == nil {
		return nil
	}
	err := format.EachOffset(context.Background(), o, func(_ int64, run []int64) error {
		all = append(all, run...)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return all
}
