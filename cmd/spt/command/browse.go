package command

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/browse"
	"github.com/savepoint-tools/spt/internal/browse/screen"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

func newBrowseCommand(env *Env) *cobra.Command {
	var o typeFlags
	cmd := &cobra.Command{
		Use:   "browse SP",
		Short: "Look around in a snapshot, full-screen",
		Long: `Shows a snapshot on the whole terminal, level by level: operators, the states of
an operator, the subtasks that hold a state, its elements or entries, and one
value in full. Types are next to the rows where the terminal has 100 columns,
else s shows them.

Keys: the arrow keys, Enter and Esc move; / searches a text in the rows below, f
finds a key of keyed state as spt get does, d compares with another snapshot as
spt diff does, y shows the command of spt for what is on the screen, ? lists all
keys, and q quits. No mouse is needed. docs/browse.md shows the screens.

It reads what is shown: elements in pages by their numbers, entries of keyed
state in pages in the order of the file, types and names of keyed state when an
operator is opened. Esc cancels a read. What cannot be read of a damaged
snapshot is marked where it is, and the rest is shown. NO_COLOR and --color
apply.`,
		Example: `  spt browse chk-4211
  spt browse s3://flink/savepoints/sp-002 --types types.yaml`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBrowse(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// browsing is a snapshot that is browsed.
type browsing struct {
	env      *Env
	location string // as given
	snap     *reader.Snapshot
	read     *readCounter
	notes    *bytes.Buffer // what commands would print on standard error
	labels   map[string]int
	life     context.Context // ends when the browser does
}

// browseElse is what else shows a snapshot.
const browseElse = "spt inspect prints operators and states, spt cat elements and entries"

func runBrowse(ctx context.Context, o typeFlags, env *Env, location string) (err error) {
	if env.common.output != ui.OutputTable {
		return &usageError{"-o cannot be combined with spt browse: it shows a screen", browseElse}
	}
	if !env.term().IsTTY || !ui.Detect(env.stdinFile, env.common.color, env.Getenv).IsTTY {
		return &usageError{"spt browse needs a terminal, for input and output", browseElse}
	}
	if err := env.readTypes(ctx, o); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := newBrowsing(ctx, env, location)
	if s.snap, err = s.env.open(ctx, location); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.snap.Close()) }()
	b := browse.New(s.operators())
	b.Color = env.term().Color
	b.Read, b.Explain = s.read.bytes.Load, s.explain
	return screen.Run(ctx, b, env.stdinFile, env.stdoutFile)
}

// newBrowsing returns a browsing whose environment prints nothing on the terminal.
func newBrowsing(ctx context.Context, env *Env, location string) *browsing {
	s := &browsing{location: location, read: &readCounter{}, notes: &bytes.Buffer{}, life: ctx}
	env.hook().set(s.read)
	quiet := *env
	quiet.Stderr, quiet.stderrFile = s.notes, nil
	s.env = &quiet
	return s
}

// readCounter counts the bytes that are read.
type readCounter struct {
	ui.NoProgress
	bytes atomic.Int64
}

// Add implements [ui.Progress].
func (c *readCounter) Add(n int64) { c.bytes.Add(n) }

// explain words an error as the last lines of a command do.
func (s *browsing) explain(err error) string {
	text := s.env.run.Hide(err.Error())
	if hint := s.env.hintOf(err); hint != "" {
		text += "\n" + hint
	}
	return text
}

// took returns what was noted since it was last called, as one text.
func (s *browsing) took() string {
	text := strings.TrimSpace(s.notes.String())
	s.notes.Reset()
	return text
}

// title returns the first step of the path.
func (s *browsing) title() string {
	name := strings.TrimRight(s.location, "/")
	if base := path.Base(name); base != "_metadata" {
		name = base
	} else {
		name = path.Base(path.Dir(name)) + "/" + base
	}
	return name
}

// command returns a command line for the snapshot.
func (s *browsing) command(name string, arguments ...string) string {
	line := append([]string{"spt", name, shell.Quote(s.location)}, arguments...)
	if s.env.reach != "" && strings.Contains(s.location, "://") {
		line = append(line, s.env.reach)
	}
	return strings.Join(line, " ")
}

// operatorFlags returns the flags that choose an operator.
func (s *browsing) operatorFlags(op *format.Operator) []string {
	if s.labels == nil {
		s.labels = map[string]int{}
		for _, op := range s.snap.Operators {
			s.labels[operatorName(s.env, op)]++
		}
	}
	name := operatorName(s.env, op)
	if s.labels[name] > 1 || s.env.run.Format == ui.FormatRedacted {
		return []string{"--operator", op.ID.String()}
	}
	return []string{"--operator", shell.Quote(format.ByName(name)[0])}
}

// stateFlags returns the flags that choose a state.
func (s *browsing) stateFlags(st *catState) []string {
	flags := s.operatorFlags(st.op)
	if s.env.run.Format == ui.FormatRedacted { // a redacted name chooses nothing
		return flags
	}
	return append(flags, "--state", shell.Quote(format.ByName(st.name)[0]))
}

// catter returns a reader of elements and entries.
func (s *browsing) catter(o catOptions) *catter {
	o.output = ui.OutputJSONL
	return &catter{env: s.env, catOptions: o, snap: s.snap}
}

// types returns the types of an operator.
func (s *browsing) types(op *format.Operator) func(ctx context.Context) (browse.Text, error) {
	return func(ctx context.Context) (browse.Text, error) {
		all, err := s.snap.Types(ctx, op)
		if err != nil {
			return nil, inContainer(err, s.snap)
		}
		schema := s.env.run.NewSchema()
		schema.Add(op, all, func(string) bool { return true })
		return browse.Rendered(schema.Document()), nil
	}
}

// compare compares the snapshot, or one operator of it, with another one.
func (s *browsing) compare(op *format.Operator) func(ctx context.Context, location string) (*browse.Page, error) {
	return func(ctx context.Context, location string) (page *browse.Page, err error) {
		other, err := s.env.open(ctx, location)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		in := compared{paths: [2]string{location, s.location}, snaps: [2]*reader.Snapshot{other, s.snap}}
		if other.ID > s.snap.ID { // the older one comes first
			in.paths, in.snaps = [2]string{s.location, location}, [2]*reader.Snapshot{s.snap, other}
		}
		for i, snap := range in.snaps {
			in.inputs[i] = snap.View()
		}
		line := []string{"spt", "diff", shell.Quote(in.paths[0]), shell.Quote(in.paths[1])}
		o := diffOptions{limit: 1}
		if op != nil {
			o.operators = []string{op.ID.String()}
			line = append(line, s.operatorFlags(op)...)
		}
		if err := o.pickBoth(s.env, &in.inputs); err != nil {
			return nil, err
		}
		res, err := o.compare(ctx, s.env, in, func() {})
		if err != nil {
			return nil, err
		}
		return &browse.Page{Title: "compared", Text: browse.Rendered(res.Document()), Command: strings.Join(line, " ")}, nil
	}
}

// item returns the page of one element or entry.
func (s *browsing) item(c *catter, st *catState, it *catItem, title, command string) (*browse.Page, error) {
	const most = 1 << 20
	var d ui.Document
	if it.size() > most {
		d.Line("%s: too large to show here", ui.Bytes(it.size()))
		d.Line("all of it:  %s", command)
		return &browse.Page{Title: title, Command: command, Text: browse.Rendered(&d)}, nil
	}
	shown, item := c.shown(), it.shown(st)
	text, err := shown.Indented(&item)
	if err != nil {
		return nil, err
	}
	d.Line("%s", text)
	return &browse.Page{Title: title, Command: command, Text: browse.Rendered(&d)}, nil
}

// row returns the row of an element or entry.
func (s *browsing) row(c *catter, st *catState, it *catItem) browse.Row {
	shown, item := c.shown(), it.shown(st)
	return browse.Row{Text: shown.Line(&item), Cells: []string{ui.Bytes(it.size())}, Bytes: it.size(), Opens: true}
}
