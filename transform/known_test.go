package transform

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestPlanIsWhatFlinkHandedOut: the sources of each new subtask, taken from
// what the old subtasks held, are what real Flink handed out, in order.
func TestPlanIsWhatFlinkHandedOut(t *testing.T) {
	var n struct{ restores, states, elements, maps, multisets, groups, entries int }
	var flink struct{ states, elements, maps, groups, entries int } // by the files of the restores
	for _, k := range testenv.KnownSnapshots(t) {
		in := sptest.Open(t, k.Location).View()
		held := map[string]sptest.TruthState{}
		heldKeyed := map[string][]map[string]any{}
		for _, o := range sptest.TruthOf(t, k.Dir).Operators {
			for _, s := range o.Subtasks {
				for name, c := range s.OperatorState {
					held[fmt.Sprint(o.ID, s.Index, name)] = c
				}
				for name, c := range s.KeyedState {
					heldKeyed[fmt.Sprint(o.ID, s.Index, name)] = c.Entries
				}
			}
		}
		restores, _ := filepath.Glob(filepath.Join(k.Dir, "restored-p*.json"))
		for _, file := range restores {
			n.restores++
			var restored sptest.Truth
			sptest.LoadJSON(t, file, &restored)
			for _, o := range restored.Operators {
				for _, s := range o.Subtasks {
					for _, st := range s.OperatorState {
						if st.Kind == "broadcast" {
							flink.maps++
						} else {
							flink.states++
							flink.elements += len(st.Raw)
						}
					}
					if len(s.KeyedState) > 0 && !k.Unaligned {
						flink.groups++
						for _, st := range s.KeyedState {
							flink.entries += len(st.Entries)
						}
					}
				}
				pick := func(op *format.Operator) bool { return op.ID.String() == o.ID }
				plan, err := PlanRescale(t.Context(), in, RescaleOptions{To: o.Parallelism, At: k.At, Operators: format.Selector{o.ID}})
				if err != nil {
					t.Fatal(err)
				}
				i := slices.IndexFunc(in.Operators, pick)
				if i < 0 {
					continue // it had no state
				}
				p := plan.Operators[i]
				for _, s := range o.Subtasks {
					where := fmt.Sprintf("%s, %s, %s, subtask %d", k.Name, filepath.Base(file), o.Name, s.Index)
					planned := map[string]bool{}
					for _, st := range p.States {
						sub := st.Subtasks[s.Index]
						want, handed := s.OperatorState[st.Name]
						planned[st.Name] = true
						if !handed {
							if sub.Elements > 0 {
								t.Errorf("%s: Flink handed out no %q", where, st.Name)
							}
							continue
						}
						var got sptest.TruthState
						elems := int64(0)
						for _, src := range sub.Sources {
							from := held[fmt.Sprint(o.ID, src.Old, st.Name)]
							elems += src.Count
							if st.Mode == format.ModeBroadcast {
								got.Entries = append(got.Entries, from.Entries...)
							} else {
								got.Raw = append(got.Raw, from.Raw[src.First:src.First+src.Count]...)
							}
						}
						if elems != sub.Elements {
							t.Errorf("%s, %s: %d elements in the sources, %d said", where, st.Name, elems, sub.Elements)
						}
						switch {
						case st.Mode == format.ModeBroadcast:
							n.maps++
							if d := cmp.Diff(mapOf(want.Entries), mapOf(got.Entries)); d != "" {
								t.Errorf("%s, %s: Flink (-), planned (+)\n%s", where, st.Name, d)
							}
							continue
						case p.Order != "" || k.Unaligned:
							n.multisets++
							slices.Sort(want.Raw)
							slices.Sort(got.Raw)
						default:
							n.states++
						}
						n.elements += len(want.Raw)
						if want.Kind != st.Mode.String() || !slices.Equal(want.Raw, got.Raw) {
							t.Errorf("%s, %s %s: planned %s\n%q\n%q", where, st.Name, want.Kind, st.Mode, want.Raw, got.Raw)
						}
					}
					for name := range s.OperatorState {
						if !planned[name] {
							t.Errorf("%s: %q is not in the plan", where, name)
						}
					}
					if len(s.KeyedState) == 0 || k.Unaligned {
						continue
					}
					if len(p.Keyed) == 0 {
						t.Fatalf("%s: no keyed state in the plan", where)
					}
					d := p.Keyed[0].Subtasks[s.Index]
					n.groups++
					if p.Keyed[0].Raw || s.KeyGroups[0] != d.Range.First || s.KeyGroups[1] != d.Range.Last() {
						t.Errorf("%s: key groups %v, planned %v", where, s.KeyGroups, d.Range)
					}
					for name, want := range s.KeyedState {
						var got []string
						for _, piece := range d.Pieces {
							for _, e := range heldKeyed[fmt.Sprint(o.ID, piece.Old, name)] {
								if g := int32(e["key_group"].(float64)); g >= piece.Groups.First && g <= piece.Groups.Last() {
									got = append(got, entryText(t, e))
								}
							}
						}
						n.entries += len(got)
						if w := entryTexts(t, want.Entries); !slices.Equal(w, sorted(got)) {
							t.Errorf("%s, %s: Flink %q\nplanned %q", where, name, w, got)
						}
					}
				}
			}
		}
	}
	t.Logf("proved %d restores, %d states with %d elements in order, %d as multisets, %d broadcast maps; %d key-group ranges with %d keyed entries",
		n.restores, n.states, n.elements, n.multisets, n.maps, n.groups, n.entries)
	testenv.Found(t, "restores", n.restores, testenv.Manifest(t).Restores)
	testenv.Found(t, "restored states", n.states+n.multisets, flink.states)
	testenv.Found(t, "restored elements", n.elements, flink.elements)
	testenv.Found(t, "restored broadcast states", n.maps, flink.maps)
	testenv.Found(t, "key-group ranges", n.groups, flink.groups)
	testenv.Found(t, "keyed entries", n.entries, flink.entries)
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func entryText(t *testing.T, e map[string]any) string {
	t.Helper()
	p, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

func entryTexts(t *testing.T, all []map[string]any) (texts []string) {
	for _, e := range all {
		texts = append(texts, entryText(t, e))
	}
	return sorted(texts)
}

// mapOf is what a broadcast state holds after its entries were put in order.
func mapOf(entries [][2]any) map[string]any {
	m := map[string]any{}
	for _, e := range entries {
		m[fmt.Sprint(e[0])] = e[1]
	}
	return m
}
