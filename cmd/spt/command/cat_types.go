package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

// typedState is a state with the types of what is printed of it, in some subtasks.
type typedState struct {
	*catState
	types report.CatTypes
}

// columnTypes returns the types of the columns of states in a Parquet file, which has one
// set of columns: if the types of the states differ, that is a wrong usage.
func (c *catter) columnTypes(ctx context.Context, states []*catState) (sum report.CatTypes, err error) {
	recorded := map[*format.Operator]*report.Schema{}
	var all []typedState
	for _, st := range states {
		schema := recorded[st.op]
		if schema == nil {
			if schema, err = c.recordedTypes(ctx, st.op); err != nil {
				return sum, err
			}
			recorded[st.op] = schema
		}
		for _, t := range st.types(schema) {
			if c.keysOnly {
				t = t.WithoutValues()
			}
			all = append(all, typedState{st, t})
			if err := sum.Add(t); err != nil {
				return sum, typesDiffer(all)
			}
		}
	}
	return sum, nil
}

// recordedTypes returns the types of the states of an operator; none if values are printed
// as stored.
func (c *catter) recordedTypes(ctx context.Context, op *format.Operator) (*report.Schema, error) {
	schema := c.env.run.NewSchema()
	if !c.decodes() {
		return schema, nil
	}
	types, err := c.snap.Types(ctx, op)
	if err != nil {
		return nil, inContainer(err, c.snap)
	}
	schema.Add(op, types, func(string) bool { return true })
	return schema, nil
}

// types returns the types of a state: several if they differ between subtasks.
func (st *catState) types(schema *report.Schema) (all []report.CatTypes) {
	schema.Each(func(op *report.SchemaOperator, s *report.SchemaState) {
		if s.Is(st.name, st.kind, st.keyed != nil) {
			all = append(all, s.Types(op)...)
		}
	})
	if len(all) == 0 && st.kind != "" { // else it is not printed, because it cannot be read
		all = append(all, report.UnknownTypes(st.kind, st.keyed != nil))
	}
	return all
}

// typesDiffer returns the error for the last state, which does not fit into one file with
// the others.
func typesDiffer(all []typedState) error {
	name := func(st typedState) string { return ui.Quote(st.shown.Operator) + "/" + ui.Quote(st.shown.Name) }
	last := all[len(all)-1]
	for _, st := range all {
		differ, ok := errors.AsType[*report.TypesDiffer](st.types.Add(last.types))
		switch {
		case !ok:
			continue
		case st.catState == last.catState:
			return &usageError{fmt.Sprintf("-o parquet: a file has one type of %s, and %s has two, %s and %s", differ.Part, name(st), differ.Types[0], differ.Types[1]),
				"choose subtasks with --subtask; which have which type:  spt schema"}
		}
		hint := "choose a state:  --state " + shell.Quote(last.name)
		if st.op != last.op {
			hint = "choose a state:  --operator " + shell.Quote(last.label) + " --state " + shell.Quote(last.name)
		}
		return &usageError{fmt.Sprintf("-o parquet: a file has one type of %s: in %s it is %s, in %s %s", differ.Part, name(st), differ.Types[0], name(last), differ.Types[1]), hint}
	}
	return fmt.Errorf("internal error: the types of %s fit with all others", name(last))
}
