package diff

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/transform/internal/elements"
)

// elsewhere is a unit after the way to another process.
func elsewhere(t *testing.T, u work.Unit) work.Unit {
	t.Helper()
	u, err := work.Decode(u.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestUnitsRunElsewhere: units that were encoded, decoded and run on the snapshot
// opened again have the same sums and elements, and the sums of ranges merge in any
// order to that of all elements, which a walk without units finds too.
func TestUnitsRunElsewhere(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var states, units, all int64
	for _, name := range agreementSnapshots(t) {
		hash := hash128.New()
		var both [2]*elements.Reader
		for i := range both {
			both[i] = elements.NewReader(sptest.Open(t, name).View(), hash, nil)
		}
		here, there := both[0], both[1]
		for _, placed := range []bool{false, true} {
			c := &comparison{placed: placed}
			for i := range c.todo {
				c.todo[i] = true
			}
			for i, op := range here.In.Operators {
				for k, sub := range op.Subtasks {
					for slot, h := range map[format.Slot]*format.OperatorHandle{format.SlotManaged: sub.Managed, format.SlotRaw: sub.Raw} {
						if h == nil {
							continue
						}
						for state := range h.States {
							at := work.Handle{Operator: i, Subtask: k, ID: op.ID, Index: sub.Index, Slot: slot}
							parts := []*partSums{}
							var counted []hash128.Digest
							for u, err := range work.Elements(t.Context(), work.Unit{Job: work.SumElements, Handle: at, State: state}, h, 64, 3) {
								if err != nil {
									t.Fatal(err)
								}
								a, err := c.sum(t.Context(), here, u)
								if err != nil {
									t.Fatalf("%s: %+v: %v", name, u, err)
								}
								b, err := c.sum(t.Context(), there, elsewhere(t, u))
								if err != nil || *a != *b {
									t.Fatalf("%s: %+v: the sums of %d and %d elements differ, %v", name, u, a.all.N, b.all.N, err)
								}
								u.Job = work.CountElements
								x, err := here.Batch(t.Context(), u, c.digest)
								if err != nil {
									t.Fatal(err)
								}
								y, err := there.Batch(t.Context(), elsewhere(t, u), c.digest)
								if err != nil || !reflect.DeepEqual(x.Elements, y.Elements) {
									t.Fatalf("%s: %+v: %v, elsewhere %v, %v", name, u, x.Elements, y.Elements, err)
								}
								for _, e := range x.Elements {
									if e.Number != int64(len(counted)) {
										t.Fatalf("%s: %+v: element %d has the number %d", name, u, len(counted), e.Number)
									}
									counted = append(counted, e.Digest)
								}
								parts = append(parts, b)
								units++
							}
							values := sptest.Elements(t, here.In, h, h.States[state].Name.String())
							var expected partSums
							for n, v := range values {
								g, _ := c.digest(work.Unit{Handle: at}, hash.Sum([]byte(v)))
								expected.parts[diffPart(g)].Add(g)
								expected.all.Add(g)
								if n >= len(counted) || g != counted[n] {
									t.Fatalf("%s, state %d: element %d of %d has another digest, or none", name, state, n, len(values))
								}
							}
							var merged partSums
							rnd.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
							for _, p := range parts {
								merged.merge(p)
							}
							if merged != expected || len(counted) != len(values) {
								t.Fatalf("%s, state %d: %d elements in other sums than %d", name, state, merged.all.N, len(values))
							}
							states, all = states+1, all+int64(len(values))
						}
					}
				}
			}
		}
	}
	t.Logf("%d states, %d units, %d elements", states, units, all)
	if states == 0 || units <= states || all <= units {
		t.Error("too little was compared")
	}
}

// TestDiffJobs: the result of sums, counts and lists is the same for any number of
// jobs, also where elements are summed up first, are repeated and go to temporary
// files.
func TestDiffJobs(t *testing.T) {
	o := sptest.UnionOptions{Subtasks: 8, Elements: 5000, ElementSize: 20, Seed: 1}
	a := unionFile(t, o)
	o.Seed += 3 // five subtasks are those of a
	moved := unionFile(t, o)
	o.Copies = true
	copies := unionFile(t, o)
	for name, b := range map[string]format.View{"moved": moved, "copies": copies, "same": a} {
		for _, placement := range []bool{false, true} {
			var expected *Elements
			for _, jobs := range []int{1, 2, 3, 8} {
				d := boundedDiffer(t, a, b, Options{List: 5, Jobs: jobs, Placement: placement}, 1000)
				out, err := d.run()
				if err != nil {
					t.Fatal(err)
				}
				e := out.Operators[0].States[0].Elements
				for _, list := range [][]ElementChange{e.AddedList, e.RemovedList} {
					for i := range list {
						list[i].Handle = nil
					}
				}
				if jobs == 1 {
					if expected = e; (e.Added == 0) != (name == "same") || (len(e.AddedList) == 0) != (name == "same") {
						t.Errorf("%s: %+v", name, e)
					}
				} else if !reflect.DeepEqual(e, expected) {
					t.Errorf("%s: with %d jobs %+v, with 1 job %+v", name, jobs, e, expected)
				}
			}
		}
	}
}
