package opstate_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestCorpus goes through every operator state of real snapshots: the envelope
// is walked to its end, which is where the elements start; the elements tile
// the rest; any of them is found by itself; and a handle built from all of
// them is the same.
func TestCorpus(t *testing.T) {
	var n struct {
		snapshots, handles, missing, walked, raw, states, elements, compressed, rebuilt, refused int
	}
	versions := map[byte]int{}
	seen := map[string]int{}
	for _, dir := range snapshots(t) {
		snap := sptest.Open(t, dir)
		src := snap.Source()
		n.snapshots++
		codec := &opstate.Codec{}
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				for _, h := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
					if h == nil || len(h.States) == 0 {
						continue
					}
					n.handles++
					metas, err := codec.Describe(t.Context(), src, h)
					if errors.Is(err, format.ErrMissing) {
						n.missing++
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", dir, err)
						continue
					}
					version := metas[0].Encoding[0]
					versions[version]++
					if h == sub.Raw {
						n.raw++
					}
					schemas, err := codec.Schema(t.Context(), src, h)
					if err != nil {
						t.Errorf("%s: %v", dir, err)
					} else {
						n.walked++
					}
					for _, s := range schemas {
						for _, z := range s.Serializers {
							classes(z.Snapshot, seen)
						}
					}
					compressed, err := codec.Compressed(t.Context(), src, h)
					if err != nil {
						t.Error(err)
					}
					if compressed {
						n.compressed++
					}
					whole := content(t, src, h.Data)
					cut := 0
					first := int64(len(whole))
					for _, s := range h.States {
						n.states++
						all, err := elements(t.Context(), codec, src, h, s.Name.String(), 0)
						if err != nil {
							t.Errorf("%s: %v", dir, err)
							continue
						}
						n.elements += len(all)
						offs := offsetsOf(t, s.Offsets)
						if len(all) != len(offs) {
							t.Errorf("%s: %d elements, %d offsets", dir, len(all), len(offs))
						}
						for i, e := range all {
							cut += len(e)
							first = min(first, offs[i])
							if !compressed && string(whole[offs[i]:offs[i]+int64(len(e))]) != e {
								t.Errorf("%s: state %q element %d is not at its offset", dir, s.Name, i)
							}
							if i%max(1, len(all)/20) == 0 {
								alone, err := elements(t.Context(), &opstate.Codec{}, src, h, s.Name.String(), int64(i))
								if err != nil || !slices.Equal(alone, all[i:]) {
									t.Errorf("%s: state %q from element %d: %v", dir, s.Name, i, err)
								}
							}
						}
					}
					if !compressed && int64(cut) != int64(len(whole))-first {
						t.Errorf("%s: %d bytes in elements, %d in the stream", dir, cut, int64(len(whole))-first)
					}
					built, err := codec.Build(t.Context(), src, runs(t, h, metas))
					if version != 0 && version < 5 {
						if !errors.Is(err, format.ErrUnsupported) {
							t.Errorf("%s: version %d was built: %v", dir, version, err)
						}
						n.refused++
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", dir, err)
						continue
					}
					same := string(content(t, src, built.Data)) == string(whole) && built.Codec == h.Codec
					for i, s := range built.States {
						k := slices.IndexFunc(h.States, func(o format.NamedState) bool { return o.Name == s.Name && o.Mode == s.Mode })
						if s.Name != metas[i].Name || !slices.Equal(offsetsOf(t, s.Offsets), offsetsOf(t, h.States[k].Offsets)) {
							same = false
						}
					}
					if !same {
						t.Errorf("%s: what was built differs", dir)
						continue
					}
					n.rebuilt++
				}
			}
		}
	}
	t.Logf("%+v; by version of the envelope (0: raw): %v", n, versions)
	t.Logf("%d classes of serializer snapshots: %q", len(seen), slices.Sorted(maps.Keys(seen)))
	if slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(c string) bool { return strings.HasSuffix(c, notWalked) }) {
		t.Error("a class was not walked")
	}
	if n.walked+n.missing != n.handles || n.rebuilt+n.refused != n.walked {
		t.Error("not all of them")
	}
}

const notWalked = " NOT WALKED"

// classes counts the classes of a snapshot tree.
func classes(s *types.Snapshot, seen map[string]int) {
	if s == nil {
		return
	}
	class := s.Class
	if s.Unknown {
		class += notWalked
	}
	seen[class]++
	for _, n := range slices.Concat(s.Nested, s.Subclasses) {
		classes(n, seen)
	}
}

type truth struct {
	Operators []struct {
		ID       string
		Subtasks []struct {
			Index int32
			State map[string]struct {
				Kind     string
				Elements []any
				Raw      []any
				Entries  [][2]any
			} `json:"operator_state"`
		}
	}
}

// TestKnown compares with what the running subtasks held: the bytes of each
// element, its value where the type is decoded, and the entries of maps.
func TestKnown(t *testing.T) {
	var n struct{ snapshots, states, raw, values, maps, entries, notDecoded int }
	held := 0
	for _, dir := range testenv.KnownDirectories(t) {
		var about struct{ Snapshot string }
		var want truth
		load(t, filepath.Join(dir, "about.json"), &about)
		load(t, filepath.Join(dir, "truth.json"), &want)
		snap := sptest.Open(t, filepath.Join(dir, about.Snapshot))
		src, codec := snap.Source(), &opstate.Codec{}
		n.snapshots++
		for _, op := range want.Operators {
			for _, sub := range op.Subtasks {
				held += len(sub.State)
				h := handle(snap.Savepoint, op.ID, sub.Index)
				if (h == nil || len(h.States) == 0) && len(sub.State) == 0 {
					continue
				}
				schemas, err := codec.Schema(t.Context(), src, h)
				if err != nil {
					t.Fatalf("%s: %v", dir, err)
				}
				if len(schemas) != len(sub.State) {
					t.Errorf("%s: %d states, the truth is %d", dir, len(schemas), len(sub.State))
				}
				for name, s := range sub.State {
					n.states++
					got, err := elements(t.Context(), codec, src, h, name, 0)
					if err != nil {
						t.Fatalf("%s: %v", dir, err)
					}
					i := slices.IndexFunc(schemas, func(s types.StateSchema) bool { return s.Name.String() == name })
					if s.Kind != schemas[i].Mode.String() {
						t.Errorf("%s: state %q is %v, the truth is %s", dir, name, schemas[i].Mode, s.Kind)
					}
					snapshot := schemas[i].Serializer("VALUE_SERIALIZER")
					if s.Kind == "broadcast" {
						n.maps++
						if len(got) != 1 {
							t.Fatalf("%s: %d elements of a broadcast state", dir, len(got))
						}
						keys, ok := types.CodecOf(schemas[i].Serializer("KEY_SERIALIZER"))
						values, vok := types.CodecOf(snapshot)
						if !ok || !vok {
							t.Fatalf("%s: state %q is not decoded", dir, name)
						}
						have := map[string]any{}
						rest := []byte(got[0][4:])
						err := format.EachEntry(t.Context(), src, codec, h, name, func(e format.MapEntry) error {
							if !bytes.HasPrefix(rest, e.Stored) || !bytes.Equal(e.Stored, append(slices.Clone(e.Key), e.Value...)) || e.Off != int64(len(got[0])-len(rest)) {
								t.Errorf("%s: state %q: entry %d is not what follows", dir, name, e.Index)
							}
							rest = rest[len(e.Stored):]
							k, err := testenv.ReadBack(t, keys, e.Key)
							if err != nil {
								return err
							}
							v, err := testenv.ReadBack(t, values, e.Value)
							have[k.String()] = asJSON(t, testenv.Plain(v))
							return err
						})
						if err != nil || len(rest) > 0 {
							t.Fatalf("%s: state %q: %d bytes left, %v", dir, name, len(rest), err)
						}
						for _, e := range s.Entries {
							n.entries++
							k := fmt.Sprint(e[0])
							if f, ok := e[0].(float64); ok {
								k = fmt.Sprint(int64(f))
							}
							if !reflect.DeepEqual(have[k], e[1]) {
								t.Errorf("%s: state %q: entry %v is %v, the truth is %v", dir, name, k, have[k], e[1])
							}
						}
						if len(have) != len(s.Entries) {
							t.Errorf("%s: state %q: %d entries, the truth is %d", dir, name, len(have), len(s.Entries))
						}
						continue
					}
					if len(got) != len(s.Raw) {
						t.Errorf("%s: state %q: %d elements, the truth is %d", dir, name, len(got), len(s.Raw))
						continue
					}
					values, ok := types.CodecOf(snapshot)
					for k, e := range got {
						n.raw++
						if have := rawForm([]byte(e)); !reflect.DeepEqual(have, s.Raw[k]) {
							t.Errorf("%s: state %q element %d: %v, the truth is %v", dir, name, k, have, s.Raw[k])
						}
						if !ok {
							n.notDecoded++
							continue
						}
						v, err := testenv.ReadBack(t, values, []byte(e))
						if err != nil {
							t.Errorf("%s: state %q element %d: %v", dir, name, k, err)
							continue
						}
						n.values++
						if have := asJSON(t, testenv.Plain(v)); !reflect.DeepEqual(have, s.Elements[k]) {
							t.Errorf("%s: state %q element %d: %v, the truth is %v", dir, name, k, have, s.Elements[k])
						}
					}
				}
			}
		}
	}
	t.Logf("%+v", n)
	testenv.Found(t, "states that subtasks held", n.states, held)
}

func handle(sp *format.Savepoint, id string, index int32) *format.OperatorHandle {
	for _, op := range sp.Operators {
		if op.ID.String() == id {
			for _, s := range op.Subtasks {
				if s.Index == index {
					return s.Managed
				}
			}
		}
	}
	return nil
}

// rawForm is how the truth writes bytes.
func rawForm(p []byte) any {
	if len(p) <= 512 {
		return hex.EncodeToString(p)
	}
	return digest(p)
}

func digest(p []byte) any {
	sum := sha256.Sum256(p)
	return fmt.Sprintf("%d bytes, sha256 %x", len(p), sum)
}

// asJSON is how the truth writes values.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case []byte:
		if len(v) > 512 {
			return map[string]any{"digest": digest(v)}
		}
		return map[string]any{"hex": hex.EncodeToString(v)}
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = asJSON(t, v[i])
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for k := range v {
			all[k] = asJSON(t, v[k])
		}
		return all
	}
	p, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(p, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func load(t testing.TB, file string, v any) {
	t.Helper()
	p, err := os.ReadFile(file)
	if err == nil {
		err = json.NewDecoder(strings.NewReader(string(p))).Decode(v)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
