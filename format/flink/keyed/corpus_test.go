package keyed_test

import (
	"encoding/json"
	"errors"
	"io/fs"
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
	default:
		t.Fatalf("a handle of type %T", h)
	}
	return all
}

// TestCorpus walks the header of every keyed stream of real snapshots: it ends
// where the first key group starts, or the stream.
func TestCorpus(t *testing.T) {
	var n struct{ snapshots, streams, headers, missing, ends, states, timers, compressed, users int }
	versions := map[int32]int{}
	files := map[string]bool{}
	if err := filepath.WalkDir(testenv.Corpus(t), func(path string, d fs.DirEntry, err error) error {
		files[filepath.Base(path)] = true
		return err
	}); err != nil {
		t.Fatal(err)
	}
	inCorpus := func(name string) bool { return files[name] }
	for _, dir := range testenv.Snapshots(t) {
		n.snapshots++
		snap := sptest.Open(t, dir)
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				if sub.ManagedKeyed == nil {
					continue
				}
				for _, s := range streams(t, sub.ManagedKeyed) {
					n.streams++
					h, err := keyed.ReadHeader(t.Context(), snap.Source(), s.stream)
					if errors.Is(err, format.ErrMissing) {
						if path, _, _ := format.Reference(s.stream); inCorpus(filepath.Base(path.String())) {
							t.Errorf("%s: %v", dir, err)
						}
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
	testenv.Found(t, "headers of keyed state", n.headers, n.streams-n.missing-n.users)
}

// TestKnown: the states are those that the jobs had, and of their kind.
func TestKnown(t *testing.T) {
	states, held := 0, 0
	for _, k := range testenv.KnownSnapshots(t) {
		dir := k.Location
		var truth struct {
			Operators []struct {
				ID       string
				Subtasks []struct {
					KeyedState map[string]struct{ Kind string } `json:"keyed_state"`
					Timers     map[string]any
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(k.Dir, "truth.json"))
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
				for name := range s.Timers {
					want[o.ID]["_timer_state/event_"+name] = types.Timers
					want[o.ID]["_timer_state/processing_"+name] = types.Timers
				}
			}
			if !k.Options.Changelog {
				held += len(want[o.ID])
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
				if k.Options.Changelog {
					continue // it is in the changes
				}
				if states++; got[name] != kind {
					t.Errorf("%s, operator %q: state %q is %q, the job had %q", dir, op.Label(), name, got[name], kind)
				}
			}
		}
	}
	t.Logf("%d states", states)
	testenv.Found(t, "keyed states and timers", states, held)
}
