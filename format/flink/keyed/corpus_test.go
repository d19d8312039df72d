package keyed_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// headed is a stream that begins with a header, and where that has to end: -1
// where nothing else says so.
type headed struct {
	stream format.Stream
	end    int64
}

// streams are those of a keyed handle that begin with a header.
func streams(t *testing.T, h format.KeyedHandle) (all []headed) {
	switch h := h.(type) {
	case *format.KeyGroups:
		first := int64(-1)
		offsets := make([]int64, h.Offsets.Len())
		if _, err := h.Offsets.Read(t.Context(), offsets, 0); err != nil {
			t.Fatal(err)
		}
		for _, o := range offsets {
			if o > 0 && (first < 0 || o < first) {
				first = o
			}
		}
		all = append(all, headed{h.Data, first})
	case *format.Incremental:
		all = append(all, headed{h.Meta, h.Meta.Size()})
	case *format.Changelog:
		for _, m := range h.Materialized {
			all = append(all, streams(t, m)...)
		}
	}
	return all
}

// TestCorpus walks the header of every keyed stream of real snapshots: it ends
// where the first key group starts, or the stream.
func TestCorpus(t *testing.T) {
	var n struct{ snapshots, headers, missing, ends, states, timers, compressed, users int }
	versions := map[int32]int{}
	for _, dir := range testenv.Snapshots(t) {
		n.snapshots++
		snap := sptest.Open(t, dir)
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				if sub.ManagedKeyed == nil {
					continue
				}
				for _, s := range streams(t, sub.ManagedKeyed) {
					h, err := keyed.ReadHeader(t.Context(), snap.Source(), s.stream)
					if errors.Is(err, format.ErrMissing) {
						n.missing++
						continue
					}
					var u *types.UnknownClass
					if errors.As(err, &u) && strings.HasPrefix(u.Class, "org.apache.flink.test.") && h.Key != nil {
						n.users++ // of a job's own serializer
						continue
					}
					if err != nil {
						t.Errorf("%s, operator %q, subtask %d: %v", dir, op.Label(), sub.Index, err)
						continue
					}
					n.headers++
					versions[h.Version]++
					if s.end >= 0 {
						if n.ends++; h.Size != s.end {
							t.Errorf("%s, operator %q, subtask %d: a header of %d bytes, and what follows starts at %d", dir, op.Label(), sub.Index, h.Size, s.end)
						}
					}
					if h.Compressed {
						n.compressed++
					}
					for _, st := range h.States {
						if n.states++; st.Keyed == types.Timers {
							n.timers++
						}
						if st.Name.String() == "" || h.Version >= 3 && (h.Key == nil || len(st.Serializers) == 0) {
							t.Errorf("%s: %+v", dir, st)
						}
					}
				}
			}
		}
	}
	t.Logf("%d snapshots: %d headers (versions %v), %d of which end where what follows starts, %d compressed; %d states, %d of them timers; %d with serializers of the job's own; %d files are not there",
		n.snapshots, n.headers, versions, n.ends, n.compressed, n.states, n.timers, n.users, n.missing)
	if n.headers < testenv.Least(t, 500, 1) || n.ends < testenv.Least(t, 500, 1) || n.timers < testenv.Least(t, 10, 0) || versions[6] == 0 || len(versions) < testenv.Least(t, 2, 0) {
		t.Error("that is less than there is")
	}
}

// truthOf finds what is known of a snapshot: beside the folder it is in, or
// further up.
func truthOf(dir string) string {
	for range 4 {
		dir = filepath.Dir(dir)
		file := filepath.Join(dir, "truth.json")
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// TestKnown: the states are those that the jobs had, and of their kind.
func TestKnown(t *testing.T) {
	states := 0
	for _, dir := range testenv.Snapshots(t) {
		truthFile := truthOf(dir)
		if truthFile == "" {
			continue
		}
		var truth struct {
			Operators []struct {
				ID       string
				Subtasks []struct {
					KeyedState map[string]struct{ Kind string } `json:"keyed_state"`
				}
			}
		}
		text, err := os.ReadFile(truthFile)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &truth); err != nil {
			t.Fatal(err)
		}
		want := map[string]map[string]string{}
		for _, o := range truth.Operators {
			want[o.ID] = map[string]string{}
			for _, s := range o.Subtasks {
				for name, st := range s.KeyedState {
					want[o.ID][name] = st.Kind
				}
			}
		}
		snap := sptest.Open(t, dir)
		for _, op := range snap.Operators {
			got := map[string]string{}
			for _, sub := range op.Subtasks {
				if sub.ManagedKeyed == nil {
					continue
				}
				for _, s := range streams(t, sub.ManagedKeyed) {
					h, err := keyed.ReadHeader(t.Context(), snap.Source(), s.stream)
					if err != nil {
						t.Fatalf("%s: %v", dir, err)
					}
					for _, st := range h.States {
						got[st.Name.String()] = st.Keyed
					}
				}
			}
			for name, kind := range want[op.ID.String()] {
				if len(got) == 0 {
					continue // all of it is in a changelog
				}
				if states++; got[name] != kind {
					t.Errorf("%s, operator %q: state %q is %q, the job had %q", dir, op.Label(), name, got[name], kind)
				}
			}
		}
	}
	t.Logf("%d states", states)
	if states < testenv.Least(t, 50, 1) {
		t.Error("that is less than there is")
	}
}
