package command

import (
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
	"github.com/savepoint-tools/spt/writer"
)

type createOptions struct {
	writeOptions
	plan       string
	from       []string
	duplicates string
}

func (o *createOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.plan, "plan", "", "`FILE` in YAML with the operators and their states; - is standard input")
	fs.StringArrayVar(&o.from, "from", nil, "`FILE` of rows: JSON lines as spt cat prints them; or NAME=FILE, JSON lines or CSV (.csv) with any fields, for the states whose rows are from NAME; repeatable; - is standard input")
	fs.StringVar(&o.duplicates, "duplicates", "refuse", "`refuse|last`: what to do with several values of one key; last takes the last one")
}

func (o *createOptions) validate(env *Env) error {
	switch {
	case o.plan == "":
		return &usageError{"nothing says which operators and states the savepoint has", "--plan FILE does; docs/create.md has an example"}
	case o.duplicates != "refuse" && o.duplicates != "last":
		return usagef("--duplicates %s: refuse or last", o.duplicates)
	}
	return o.writeOptions.validate(env)
}

func newCreateCommand(env *Env) *cobra.Command {
	var o createOptions
	cmd := &cobra.Command{
		Use:   "create [OUT] --plan FILE [--from FILE]…",
		Short: "Create a savepoint for a job that never ran, from rows",
		Long: `Creates a savepoint for a job that never ran: operators by uid, with list,
union, broadcast and keyed state. The plan names the operators, the states and
their types in the type language (docs/type-language.md); the values are rows in
JSON lines or CSV. The savepoint is canonical: all state backends but ForSt
restore it, at any parallelism.

The lines that spt cat prints are rows: each goes to the state of the plan with
its operator and state. Fields of other files are mapped to keys and values by
the plan. The key groups of keys are computed from the keys. Elements of list
and union state go to the subtask of their line, or to the subtasks in turn.

All rows are checked before anything is written. What is wrong is named with
file and line: values of another type, fields that are missing, and several
values of one key. Memory does not grow with the rows: they are sorted in
temporary files. See docs/create.md.`,
		Example: `  spt create bootstrap --plan plan.yaml --from users=users.csv
  spt cat sp-001 --operator even-id-logger | spt create logger --plan plan.yaml --from -`,
		Args: between(0, 1, "one directory or .spt file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			out := ""
			if len(args) == 1 {
				out = args[0]
			}
			return o.run(cmd.Context(), env, out)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *createOptions) run(ctx context.Context, env *Env, out string) (err error) {
	text, err := env.readSide(ctx, "--plan", o.plan)
	if err != nil {
		return err
	}
	plan, err := parseCreatePlan(o.plan, text)
	if err != nil {
		return err
	}
	b, err := plan.builder(writer.FlinkOptions{LastWins: o.duplicates == "last", TempDir: env.common.tmp})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	view, err := o.build(ctx, env, plan, b)
	if err != nil {
		return err
	}
	snap, ok := reader.Of(view)
	if !ok {
		return errors.New("internal error: a savepoint that cannot be written")
	}
	if o.opts.Family == "" && out == "" {
		o.opts.Family = reader.Flink
	}
	written, r, err := o.write(ctx, env, snap, o.plan, out)
	if err != nil {
		return err
	}
	answer := plan.report()
	answer.Write = r
	if err := env.answer(answer); err != nil {
		return err
	}
	return incomplete(written, r)
}

// build reads the rows and builds the savepoint.
func (o *createOptions) build(ctx context.Context, env *Env, plan *createPlan, b *writer.FlinkBuilder) (format.View, error) {
	stop := env.reading("reading rows", nil)
	defer stop()
	files, err := plan.files(o.from)
	if err != nil {
		return format.View{}, err
	}
	w := &lineProblems{what: "row", at: rowPlace(files)}
	for i := range files {
		if err := files[i].read(ctx, env, plan, w); err != nil {
			return format.View{}, err
		}
	}
	if err := w.err(); err != nil {
		return format.View{}, err
	}
	view, err := b.View(ctx)
	var twice *writer.DuplicateError
	if errors.As(err, &twice) {
		for _, d := range twice.Duplicates {
			w.add(d.Second, fmt.Errorf("%s/%s: duplicate %s; the first is at %s", ui.Quote(d.Operator), ui.Quote(d.State), ui.Printable(d.Key), w.at(d.First)))
		}
		w.more += twice.More
		w.hint = "--duplicates last takes the last value of each key"
		return format.View{}, w.err()
	}
	return view, err
}

// lineBits is the number of bits of a row that are its line. The others are the index
// of its file.
const lineBits = 44

func rowOf(file int, line int64) int64 { return int64(file)<<lineBits | line }

// rowPlace returns where a row is: "rows.jsonl:7".
func rowPlace(files []rowFile) func(row int64) string {
	return func(row int64) string { return placeOfLine(files[row>>lineBits].path, row&(1<<lineBits-1)) }
}

// report returns what was created.
func (p *createPlan) report() *report.Create {
	r := &report.Create{Flink: p.release.String()}
	for _, op := range p.operators {
		o := report.CreatedOperator{UID: op.UID, Name: op.Name, ID: op.b.ID().String(), Parallelism: op.Parallelism, MaxParallelism: op.b.MaxParallelism(), Key: op.Key}
		for _, s := range op.states {
			o.States = append(o.States, report.CreatedState{State: s.Name, Kind: s.Kind, Type: s.typeText(), Keyed: s.keyed, Entries: s.b.Count()})
		}
		r.Operators = append(r.Operators, o)
	}
	return r
}

// files returns the files of --from.
func (p *createPlan) files(from []string) (files []rowFile, err error) {
	var names []string
	for _, text := range from {
		f := rowFile{index: len(files), path: text}
		if name, path, ok := strings.Cut(text, "="); ok {
			f.name, f.path = name, path
			switch f.states = p.rowsFrom(name); {
			case len(f.states) == 0:
				return nil, usagef("--from %s: no state of the plan has rows from %s", ui.Quote(text), ui.Quote(name))
			case slices.Contains(names, name):
				return nil, usagef("--from %s: two files have the name %s", ui.Quote(text), ui.Quote(name))
			}
			names = append(names, name)
		}
		switch {
		case f.path == "":
			return nil, usagef("--from %s: expected FILE or NAME=FILE", ui.Quote(text))
		case f.isCSV() && f.name == "":
			return nil, usagef("--from %s: rows in CSV need a name: --from NAME=%s", ui.Quote(text), f.path)
		}
		files = append(files, f)
	}
	for _, op := range p.operators {
		for _, s := range op.states {
			if s.from != "" && !slices.Contains(names, s.from) {
				return nil, p.fail(s.line, "state %s has rows from %s, which --from does not name: give --from %s=FILE", ui.Quote(s.Name), ui.Quote(s.from), s.from)
			}
		}
	}
	return files, nil
}
