package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

type schemaOptions struct {
	operators, states []string
	typeFlags
	as string
}

func (o *schemaOptions) addFlags(fs *pflag.FlagSet) {
	operatorFlag(fs, &o.operators, "only these operators")
	stateFlag(fs, &o.states, "only these states")
	o.typeFlags.addFlags(fs)
	fs.StringVar(&o.as, "as", "", "print the types as `avro|jsonschema|sql`")
}

var schemaLanguages = []string{report.AsAvro, report.AsJSONSchema, report.AsSQL}

func (o *schemaOptions) validate(env *Env) error {
	if o.as != "" && !slices.Contains(schemaLanguages, o.as) {
		return usagef("--as %s: must be one of %s", ui.Quote(o.as), strings.Join(schemaLanguages, ", "))
	}
	if o.as != "" && env.common.output == ui.OutputCSV {
		return usagef("-o csv cannot be combined with --as: a schema is not a list of rows")
	}
	p := pick{operators: o.operators, states: o.states}
	return p.validate()
}

func newSchemaCommand(env *Env) *cobra.Command {
	var o schemaOptions
	cmd := &cobra.Command{
		Use:   "schema SP",
		Short: "Show the types of states: keys, values, fields, time to live",
		Long: `Shows the type of each managed state, keyed state included: the keys and the
values, with the fields of POJOs, Avro records and rows of SQL, namespaces, and
whether values have a time to live. The types are from the serializer snapshots
in the headers of all streams, and in the changes of changelogs; no element is
read. A state whose types differ between subtasks is shown once for each type.

Types are in the type language (docs/type-language.md), which --type reads. For
a state that is not decoded, spt says which class is not, and why.

--as avro prints an Avro schema for each state, or the schema that the state
has; of state with keys, a record of key, namespace, map key (user_key) and
value. --as jsonschema prints a JSON Schema for each state, which describes the
lines that spt cat prints for it: of a connector's state any of the structures
that can be stored in it, and for each coordinator the line of cat
--coordinator. --as sql prints a CREATE TABLE statement for Flink's savepoint
connector for each operator, with its value, list and map states. The connector
reads a Flink directory with canonical state or heap state; what it does not
read is in a comment. Big numbers, times and enums are text. With -o json or
jsonl each schema comes with its operator and state.`,
		Example: `  spt schema sp-001
  spt schema sp-001 --state buffered-elements -o json | jq '.operators[].states[].value.fields'
  spt schema sp-001 --state buffered-elements --as avro > elements.avsc
  spt schema sp-002 --operator keyed --as sql`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			return runSchema(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runSchema(ctx context.Context, o schemaOptions, env *Env, location string) (err error) {
	if err := env.readTypes(ctx, o.typeFlags); err != nil {
		return err
	}
	snap, err := env.open(ctx, location)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	s, ops, err := o.read(ctx, env, snap)
	if err != nil {
		return err
	}
	var answer report.Report = s
	switch o.as {
	case report.AsAvro, report.AsJSONSchema:
		answer = s.As(o.as)
	case report.AsSQL:
		if answer, err = o.sql(ctx, env, snap, s, ops); err != nil {
			return err
		}
	}
	if err := env.answer(answer); err != nil {
		return err
	}
	unread := 0
	for i := range s.Operators {
		unread += len(s.Operators[i].Unread)
	}
	if unread > 0 {
		return &findings{fmt.Sprintf("types of %s not read", ui.Plural(int64(unread), "stream"))}
	}
	return nil
}

// read returns the types of the chosen states, and the operators that have some, in the
// same order.
func (o *schemaOptions) read(ctx context.Context, env *Env, snap *reader.Snapshot) (*report.Schema, []*format.Operator, error) {
	p := pick{operators: o.operators}
	all, err := p.pickOperators(env, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	stop := env.reading("reading", nil)
	defer stop()
	s := env.run.NewSchema()
	var names []string
	var ops []*format.Operator
	for _, op := range all {
		types, err := snap.Types(ctx, op)
		if err != nil {
			return nil, nil, inContainer(err, snap)
		}
		before := len(s.Operators)
		s.Add(op, types, func(state string) bool {
			if state != "" {
				names = append(names, state)
			}
			return matches(o.states, state)
		})
		if len(s.Operators) > before {
			ops = append(ops, op)
		}
	}
	if err := env.checkGlobs(o.states, names, "state", "no managed state written by Flink"); err != nil {
		return nil, nil, err
	}
	return s, ops, nil
}

// sql returns the tables of keyed states, one for each operator. Operators that
// have none are named in comments, unless no operator has one.
func (o *schemaOptions) sql(ctx context.Context, env *Env, snap *reader.Snapshot, s *report.Schema, ops []*format.Operator) (report.Report, error) {
	if snap.Container.Family != reader.Flink {
		return nil, &hintedError{format.Errorf(format.ErrUnsupported, "--as sql: Flink reads a directory, and %s is an .spt file", ui.Quote(snap.Location)), "write one first:  spt convert"}
	}
	path, err := snap.URI(ctx)
	if err != nil {
		return nil, err
	}
	all := &report.SchemaText{}
	var first error
	tables := 0
	for i, op := range ops {
		t, err := s.SQL(&s.Operators[i], path, env.run.UID(op))
		var refused error
		switch {
		case err != nil:
			refused = format.Errorf(format.ErrUnsupported, "--as sql: operator %s: %v", ui.Quote(env.run.Label(op)), err)
		case t == nil:
			continue
		case slices.ContainsFunc(op.Subtasks, nativeKeyed):
			err = errors.New("the savepoint connector does not read native or incremental files and changelogs")
			refused = &hintedError{format.Errorf(format.ErrUnsupported, "--as sql: operator %s: %v", ui.Quote(env.run.Label(op)), err), "build canonical state first:  spt convert IN OUT --keyed canonical"}
		}
		if refused != nil {
			first = cmp.Or(first, refused)
			all.NoTable(&s.Operators[i], err)
			continue
		}
		tables++
		all.Schemas = append(all.Schemas, t.Schemas...)
	}
	switch {
	case tables > 0:
		return all, nil
	case first != nil:
		return nil, first
	}
	return nil, &hintedError{format.Errorf(format.ErrUnsupported, "--as sql: no value, list or map state of keyed state with a type that SQL has"), "the savepoint connector reads only those; what each state is:  spt schema SP"}
}

// nativeKeyed reports whether the keyed state of a subtask is not a stream of key groups.
func nativeKeyed(sub *format.Subtask) bool {
	_, stream := sub.ManagedKeyed.(*format.KeyGroups)
	return sub.ManagedKeyed != nil && !stream
}
