package report

import (
	"iter"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/transform"
)

// Rescale is the answer of rescale: the whole plan.
type Rescale struct {
	Input     string            `json:"input,omitempty"`
	Output    string            `json:"output,omitempty"`
	To        int32             `json:"parallelism_to"`
	At        string            `json:"at,omitempty" jsonschema:"description=location from which Flink is assumed to restore the snapshot"`
	Strategy  string            `json:"strategy"`
	Refused   string            `json:"refused,omitempty" jsonschema:"description=why spt cannot write the plan, though Flink can carry it out"`
	Remarks   []string          `json:"remarks,omitempty"`
	Operators []RescaleOperator `json:"operators"`

	in   RescaleInput
	hint string // what to do where the plan is refused
}

// RescaleOperator is the plan for one operator.
type RescaleOperator struct {
	UID             string         `json:"uid,omitempty"`
	Name            string         `json:"name,omitempty"`
	ID              string         `json:"id,omitempty"`
	From            int32          `json:"parallelism_from"`
	To              int32          `json:"parallelism_to"`
	MaxParallelism  int32          `json:"max_parallelism,omitempty"`
	Left            string         `json:"left,omitempty" jsonschema:"description=why the operator is left alone"`
	InFlight        bool           `json:"in_flight,omitempty" jsonschema:"description=has in-flight data, whose path depends on the job's graph and is not in the plan"`
	Order           string         `json:"order,omitempty" jsonschema:"description=why the order of blocks in a subtask is not certain"`
	PlaceOrder      bool           `json:"order_depends_on_location,omitempty" jsonschema:"description=the order of blocks depends on the location of the snapshot"`
	States          []RescaleState `json:"states"`
	Keyed           []RescaleKeyed `json:"keyed,omitempty"`
	HighestPossible int32          `json:"highest_parallelism,omitempty"`

	label string
}

// RescaleState is how the elements of one state are redistributed.
type RescaleState struct {
	Name     string           `json:"name"`
	Kind     string           `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast"`
	Raw      bool             `json:"raw,omitempty"`
	Elements int64            `json:"elements" jsonschema:"description=in the snapshot; of broadcast state: replicas"`
	Bytes    int64            `json:"bytes"`
	Varies   bool             `json:"order_varies,omitempty" jsonschema:"description=subtasks get this union state in different orders; all get it from OUT in the order of subtask 0"`
	Growth   []int64          `json:"growth,omitempty" jsonschema:"description=of union state: elements assigned by this restore and the next three, if the job adds again what it gets"`
	Empty    int              `json:"subtasks_without,omitempty" jsonschema:"description=new subtasks that get nothing"`
	Subtasks []RescaleSubtask `json:"subtasks"`
}

// RescaleSubtask is what one new subtask is assigned.
type RescaleSubtask struct {
	Index    int             `json:"index"`
	Elements int64           `json:"elements"`
	Bytes    int64           `json:"bytes"`
	Sources  []RescaleSource `json:"sources" jsonschema:"description=in the order assigned"`
}

// RescaleSource is elements first … first+count-1 of an old subtask.
type RescaleSource struct {
	Old   int32 `json:"old_subtask"`
	First int64 `json:"first"`
	Count int64 `json:"count"`
}

// RescaleKeyed is how key groups are redistributed.
type RescaleKeyed struct {
	Raw      bool                  `json:"raw,omitempty"`
	Subtasks []RescaleKeyedSubtask `json:"subtasks"`
}

// RescaleKeyedSubtask is the key groups of one new subtask.
type RescaleKeyedSubtask struct {
	Index   int                  `json:"index"`
	First   int32                `json:"first_key_group"`
	Count   int32                `json:"key_groups"`
	Sources []RescaleKeyedSource `json:"sources" jsonschema:"description=in the order assigned"`
}

// RescaleKeyedSource is key groups of an old subtask's handle.
type RescaleKeyedSource struct {
	Old   int32 `json:"old_subtask"`
	First int32 `json:"first_key_group"`
	Count int32 `json:"key_groups"`
	Whole bool  `json:"whole,omitempty" jsonschema:"description=the whole handle is assigned, and clipped by the state backend"`
}

// RescaleInput is what [Run.NewRescale] needs besides the plan.
type RescaleInput struct {
	In, Out string
	Flags   string // of the command that writes the plan, each after a blank
	Wide    bool   // list all subtasks
	Suggest bool   // list parallelisms that divide key groups evenly
	// Multiplied are union states that restores may have multiplied.
	Multiplied []StateOf
}

// StateOf names a state of an operator.
type StateOf struct {
	Operator *format.Operator
	State    string
}

// NewRescale reports a plan.
func (r *Run) NewRescale(p *transform.RescalePlan, in RescaleInput) *Rescale {
	res := &Rescale{Input: in.In, Output: in.Out, To: p.To, At: r.Text(p.At), Strategy: string(p.Strategy), in: in}
	for _, op := range p.Operators {
		o := RescaleOperator{
			UID: r.UID(op.Operator), Name: r.Text(op.Operator.Name.String()), ID: op.Operator.ID.String(), label: r.Label(op.Operator),
			From: op.From, To: op.To, MaxParallelism: op.Operator.MaxParallelism, Left: op.Left, InFlight: op.InFlight,
			Order: op.Order, PlaceOrder: op.PlaceOrder, States: []RescaleState{}, HighestPossible: op.Operator.MaxParallelism,
		}
		for _, st := range op.States {
			o.States = append(o.States, r.rescaleState(st, p.To))
		}
		for _, k := range op.Keyed {
			o.Keyed = append(o.Keyed, rescaleKeyed(k))
		}
		res.Operators = append(res.Operators, o)
	}
	res.addRemarks(r)
	return res
}

func (r *Run) rescaleState(st *transform.StatePlan, to int32) RescaleState {
	s := RescaleState{Name: r.Text(st.Name), Kind: st.Mode.String(), Raw: st.Raw, Elements: st.Elements, Bytes: st.Bytes, Varies: st.OrderVaries}
	if st.Mode == format.ModeUnion {
		n := st.Elements
		for range 4 {
			n = number.Times(n, int64(to))
			s.Growth = append(s.Growth, n)
		}
	}
	for i, sub := range st.Subtasks {
		t := RescaleSubtask{Index: i, Elements: sub.Elements, Bytes: sub.Bytes, Sources: []RescaleSource{}}
		for _, src := range sub.Sources {
			t.Sources = append(t.Sources, RescaleSource(src))
		}
		if sub.Elements == 0 {
			s.Empty++
		}
		s.Subtasks = append(s.Subtasks, t)
	}
	return s
}

func rescaleKeyed(k *transform.KeyedPlan) RescaleKeyed {
	keyed := RescaleKeyed{Raw: k.Raw}
	for i, s := range k.Subtasks {
		sub := RescaleKeyedSubtask{Index: i, First: s.Range.First, Count: s.Range.Count, Sources: []RescaleKeyedSource{}}
		for _, src := range s.Pieces {
			_, incremental := src.Handle.(*format.Incremental)
			whole := incremental && src.Handle.KeyGroups() != src.Groups
			sub.Sources = append(sub.Sources, RescaleKeyedSource{int32(src.Old), src.Groups.First, src.Groups.Count, whole})
		}
		keyed.Subtasks = append(keyed.Subtasks, sub)
	}
	return keyed
}

// Refuse notes why spt cannot write the plan, and what to do.
func (r *Rescale) Refuse(why, hint string) { r.Refused, r.hint = why, hint }

// InFlight reports whether an operator that is rescaled has in-flight data.
func (r *Rescale) InFlight() bool {
	return slices.ContainsFunc(r.Operators, func(op RescaleOperator) bool { return op.Left == "" && op.InFlight })
}

// Lines implements [Lines]: a line for each operator.
func (r *Rescale) Lines() iter.Seq[any] { return each(r.Operators) }

// Header implements [Rows].
func (r *Rescale) Header() []string {
	return []string{"operator", "id", "state", "kind", "subtask", "elements", "bytes", "old_subtask", "first", "count"}
}

// Rows implements [Rows]: a row for each block of elements or key groups.
func (r *Rescale) Rows() iter.Seq[[]string] {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	return func(yield func([]string) bool) {
		for _, op := range r.Operators {
			for _, st := range op.States {
				for _, sub := range st.Subtasks {
					for _, src := range sub.Sources {
						if !yield([]string{op.label, op.ID, st.Name, st.Kind, strconv.Itoa(sub.Index), text(sub.Elements), text(sub.Bytes), text(int64(src.Old)), text(src.First), text(src.Count)}) {
							return
						}
					}
				}
			}
			for _, k := range op.Keyed {
				for _, sub := range k.Subtasks {
					for _, src := range sub.Sources {
						if !yield([]string{op.label, op.ID, "", "key groups", strconv.Itoa(sub.Index), "", "", text(int64(src.Old)), text(int64(src.First)), text(int64(src.Count))}) {
							return
						}
					}
				}
			}
		}
	}
}
