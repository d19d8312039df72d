package assign_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// content is truth.json and restored-pN.json of the known corpus, as far as it
// matters here.
type content struct {
	Operators []struct {
		Name, ID    string
		Parallelism int
		Subtasks    []struct {
			Index         int
			OperatorState map[string]stateContent `json:"operator_state"`
			KeyGroups     []int32                 `json:"key_groups"`
			KeyedState    map[string]any          `json:"keyed_state"`
		}
	}
}

type stateContent struct {
	Kind    string
	Raw     []string // of each element
	Entries [][2]any
}

// TestKnown: what real Flink handed to each subtask at other parallelisms is
// what the plan says, element by element.
func TestKnown(t *testing.T) {
	var sum proof
	for _, dir := range testenv.KnownDirectories(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) { known(t, dir, &sum) })
	}
	t.Logf("%d restores: %d states in order, %d as multisets, with %d elements; %d broadcast maps; %d key-group ranges; %d handles cut, %d of them compressed, %d of segments",
		sum.restores, sum.states, sum.multisets, sum.elements, sum.maps, sum.ranges, sum.handles, sum.compressed, sum.segments)
	testenv.Found(t, "restores", sum.restores, testenv.Manifest(t).Restores)
	testenv.Found(t, "restored states", sum.states+sum.multisets, sum.restored.states)
	testenv.Found(t, "restored broadcast states", sum.maps, sum.restored.maps)
	testenv.Found(t, "restored elements", sum.elements, sum.restored.elements)
}

type proof struct {
	restores, states, elements, maps, multisets, ranges, handles, compressed, segments int
	restored                                                                           struct{ states, elements, maps int } // by the files of the restores
}

func known(t *testing.T, dir string, sum *proof) {
	var about struct {
		Snapshot string
		Options  struct {
			At                  string
			Unaligned, Compress bool
			FileMerging         bool `json:"file_merging"`
		}
	}
	var truth content
	load(t, filepath.Join(dir, "about.json"), &about)
	load(t, filepath.Join(dir, "truth.json"), &truth)
	file, err := os.ReadFile(filepath.Join(dir, about.Snapshot, "_metadata"))
	if err != nil {
		t.Fatal(err)
	}
	sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The restores read a copy of savepoint/ that stood at the place named.
	k := &knownSnapshot{
		dir: dir, at: about.Options.At, snapshot: about.Snapshot, unaligned: about.Options.Unaligned,
		operators: map[string]*format.Operator{}, maps: map[mapKey][][2]any{}, elements: map[elementsKey][]string{}, sum: sum,
	}
	for _, op := range sp.Operators {
		k.operators[op.ID.String()] = op
	}
	for _, o := range truth.Operators {
		for _, s := range o.Subtasks {
			for name, st := range s.OperatorState {
				k.maps[mapKey{o.ID, s.Index, name}] = st.Entries
			}
		}
	}
	restores, _ := filepath.Glob(filepath.Join(dir, "restored-p*.json"))
	before := *sum
	for _, r := range restores {
		var c content
		load(t, r, &c)
		sum.restores++
		for _, o := range c.Operators {
			for _, s := range o.Subtasks {
				for _, st := range s.OperatorState {
					if st.Kind == "broadcast" {
						sum.restored.maps++
						continue
					}
					sum.restored.states++
					sum.restored.elements += len(st.Raw)
				}
			}
		}
		k.judge(t, filepath.Base(r), c)
	}
	handles := sum.handles - before.handles
	if compressed := sum.compressed - before.compressed; compressed != handles && about.Options.Compress || compressed > 0 && !about.Options.Compress {
		t.Errorf("%d of %d handles are compressed, and the job compressed state: %t", compressed, handles, about.Options.Compress)
	}
	if merged := sum.segments > before.segments; merged != (about.Options.FileMerging && handles > 0) {
		t.Errorf("segments of merged files: %t, and the job merged files: %t", merged, about.Options.FileMerging)
	}
}

type (
	mapKey struct {
		operator string
		subtask  int
		state    string
	}
	elementsKey struct {
		h *format.OperatorHandle
		k int
	}
	knownSnapshot struct {
		dir, at, snapshot string
		unaligned         bool
		operators         map[string]*format.Operator
		maps              map[mapKey][][2]any // broadcast states as they were
		elements          map[elementsKey][]string
		sum               *proof
	}
)

// judge compares one restore with the plans for it.
func (k *knownSnapshot) judge(t *testing.T, name string, c content) {
	for _, o := range c.Operators {
		op := k.operators[o.ID]
		if op == nil {
			continue // it had no state
		}
		old := make([]*format.OperatorHandle, op.Parallelism)
		keyed := make([]format.KeyedHandle, op.Parallelism)
		for _, s := range op.Subtasks {
			old[s.Index], keyed[s.Index] = s.Managed, s.ManagedKeyed
		}
		at := "file:" + k.at + strings.TrimPrefix(k.snapshot, "savepoint")
		plan, err := assign.Operator(old, o.Parallelism, assign.Options{At: at})
		if err != nil {
			t.Fatal(err)
		}
		groups, err := assign.Keyed(keyed, op.Parallelism, int32(o.Parallelism), op.MaxParallelism)
		if err != nil {
			t.Fatal(err)
		}
		segments := slices.ContainsFunc(old, func(h *format.OperatorHandle) bool {
			return h != nil && len(h.States) > 0 && format.Kind(h.Data) == format.KindSegment
		})
		mixed := slices.ContainsFunc(plan.Subtasks, func(s assign.Subtask) bool { return len(s.Pieces) > 1 })
		if segments && mixed != (plan.Undefined != "") || !segments && plan.Undefined != "" {
			t.Errorf("%s, %s: segments %t, several handles %t, undefined %q", name, o.Name, segments, mixed, plan.Undefined)
		}
		for _, s := range o.Subtasks {
			where := fmt.Sprintf("%s, %s, subtask %d", name, o.Name, s.Index)
			if len(s.KeyedState) > 0 {
				g := groups[s.Index].Range
				if len(s.KeyGroups) != 2 || s.KeyGroups[0] != g.First || s.KeyGroups[1] != g.Last() {
					t.Errorf("%s: key groups %v, planned %s", where, s.KeyGroups, g)
				}
				k.sum.ranges++
			}
			got := k.handed(t, o.ID, old, plan.Subtasks[s.Index])
			for state := range got {
				if _, ok := s.OperatorState[state]; !ok {
					t.Errorf("%s: Flink handed out no %q", where, state)
				}
			}
			for state, want := range s.OperatorState {
				k.compare(t, fmt.Sprintf("%s, %s", where, state), want, got[state], plan.Undefined != "" || k.unaligned)
			}
		}
	}
}

func (k *knownSnapshot) compare(t *testing.T, where string, want, got stateContent, anyOrder bool) {
	t.Helper()
	if want.Kind == "broadcast" {
		k.sum.maps++
		if d := cmp.Diff(asMap(want.Entries), asMap(got.Entries)); d != "" {
			t.Errorf("%s: Flink (-), planned (+):\n%s", where, d)
		}
		return
	}
	w, g := slices.Clone(want.Raw), slices.Clone(got.Raw)
	if got.Kind != "" && got.Kind != want.Kind {
		t.Errorf("%s: %s, planned %s", where, want.Kind, got.Kind)
	}
	if anyOrder {
		slices.Sort(w)
		slices.Sort(g)
		k.sum.multisets++
	} else {
		k.sum.states++
	}
	k.sum.elements += len(w)
	if !slices.Equal(w, g) {
		t.Errorf("%s: %d elements, planned %d:\n%q\n%q", where, len(w), len(g), w, g)
	}
}

// handed follows the plan through the bytes: what the subtask is handed.
func (k *knownSnapshot) handed(t *testing.T, id string, old []*format.OperatorHandle, sub assign.Subtask) map[string]stateContent {
	got := map[string]stateContent{}
	for _, p := range sub.Pieces {
		for _, s := range p.Shares {
			c := got[s.Name]
			c.Kind = s.Mode.String()
			if s.Mode == format.ModeBroadcast {
				entries, ok := k.maps[mapKey{id, p.Old, s.Name}]
				if !ok {
					t.Fatalf("old subtask %d had no %q", p.Old, s.Name)
				}
				c.Entries = append(slices.Clone(c.Entries), entries...)
			} else {
				all := k.cut(t, old[p.Old], s.State)
				c.Raw = append(slices.Clone(c.Raw), all[s.First:s.First+s.Count]...)
			}
			got[s.Name] = c
		}
	}
	return got
}

var header = []byte("\xff\x06\x00\x00sNaPpY")

// cut is the elements of a state of a handle, in the form of the reports: an
// element ends where any other of the handle starts.
func (k *knownSnapshot) cut(t *testing.T, h *format.OperatorHandle, state int) []string {
	t.Helper()
	key := elementsKey{h, state}
	if c, ok := k.elements[key]; ok {
		return c
	}
	data := k.read(t, h.Data)
	k.sum.handles++
	ends := []int64{int64(len(data))}
	for _, st := range h.States {
		ends = append(ends, offsets(t, st.Offsets)...)
	}
	slices.Sort(ends)
	compressed := bytes.HasPrefix(data, []byte{0, 0, 0, 6, 1})
	if compressed {
		k.sum.compressed++
	}
	for i, st := range h.States {
		cuts := []string{}
		for _, from := range offsets(t, st.Offsets) {
			at, _ := slices.BinarySearch(ends, from+1)
			p := data[from:ends[at]]
			if compressed {
				var err error
				if p, err = io.ReadAll(s2.NewReader(bytes.NewReader(slices.Concat(header, p)))); err != nil {
					t.Fatal(err)
				}
			}
			cuts = append(cuts, report(p))
		}
		k.elements[elementsKey{h, i}] = cuts
	}
	return k.elements[key]
}

// report is bytes as the reports have them: length and digest of long ones.
func report(p []byte) string {
	if len(p) <= 512 {
		return hex.EncodeToString(p)
	}
	sum := sha256.Sum256(p)
	return fmt.Sprintf("%d bytes, sha256 %x", len(p), sum)
}

func (k *knownSnapshot) read(t *testing.T, s format.Stream) []byte {
	t.Helper()
	read := func(path string) []byte {
		p, err := os.ReadFile(filepath.Join(k.dir, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	inside := func(path format.Text) string {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(path.String(), "file:"), k.at)
		if !ok {
			t.Fatalf("a file at %q", path)
		}
		return "savepoint" + rest
	}
	switch s := s.(type) {
	case *format.Inline:
		var p []byte
		err := s.Data.View(func(b []byte) error { p = slices.Clone(b); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return p
	case *format.File:
		if s.Relative {
			return read(k.snapshot + "/" + s.Path.String())
		}
		return read(inside(s.Path))
	case *format.Segment:
		k.sum.segments++
		return read(inside(s.Path))[s.Start : s.Start+s.Length]
	}
	t.Fatalf("a stream of kind %T", s)
	return nil
}

func offsets(t *testing.T, o format.Offsets) []int64 {
	t.Helper()
	var all []int64
	err := format.EachOffset(context.Background(), o, func(_ int64, run []int64) error {
		all = append(all, run...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// asMap is what a broadcast state holds after its entries were put in order.
func asMap(entries [][2]any) map[string]any {
	m := map[string]any{}
	for _, e := range entries {
		m[fmt.Sprint(e[0])] = e[1]
	}
	return m
}

func load(t *testing.T, file string, v any) {
	t.Helper()
	p, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(p, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}
