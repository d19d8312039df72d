package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
)

// commonFlags are the flags of every command.
type commonFlags struct {
	output ui.Output
	color  ui.ColorMode
	quiet  bool
	jobs   int
	maps   []string
	follow []string
	names  string
	tmp    string
	limits limitsFlag

	flinkConf string // see addStoreFlags
}

func (e *Env) addCommonFlags(fs *pflag.FlagSet) {
	c := &e.common
	fs.VarP(&c.output, "output", "o", "output format; csv only where the result is a list of rows; parquet of cat, diff, inspect --by, offsets and orphans")
	fs.Var(&e.run.Format, "format", "how names and values from a file are printed")
	fs.Var(&c.color, "color", "when to use colour")
	fs.BoolVarP(&c.quiet, "quiet", "q", false, "print no progress and no remarks on stderr")
	fs.IntVarP(&c.jobs, "jobs", "j", 0, "work on `N` items at a time (default 8 to list and to verify, 4 to write, one per processor to print, compare or count elements; 16 to read and list, and for copies that the service makes, where a snapshot is not on this machine); the output does not depend on it")
	fs.StringArrayVar(&c.maps, "map", nil, "`OLD=NEW`: files that absolute references name below OLD are now in NEW; repeatable, the longest OLD wins (also SPT_MAP)")
	fs.StringVar(&c.tmp, "tmp", "", "write temporary files to the directory `DIR`, needed only for more than a million distinct elements or keys (default: TMPDIR, or the directory of the system)")
	fs.Var(&c.limits, "limits", "`NAME=N`: let a file take more than the default, such as memory=1GiB; NAME: memory, manifest, chunk, value, offsets, chunk-refs, nodes, operators, subtasks or depth; none lifts all")
	fs.StringArrayVar(&c.follow, "follow", nil, "also read files below `PREFIX`, a directory or URI outside the snapshot to which its references or links lead; repeatable (also SPT_FOLLOW)")
	fs.StringVar(&c.names, "names", "", "`FILE` with the job's uids, one per line, to name operators that the snapshot has only ids of; - is standard input (also SPT_NAMES)")
}

// operatorFlag adds --operator; what says what is done with the operators.
func operatorFlag(fs *pflag.FlagSet, to *[]string, what string) {
	fs.StringArrayVar(to, "operator", nil, what+"; `NAME` is a uid, a name, an id or an unambiguous beginning of an id (4 digits or more), or a glob of these; repeatable")
}

// stateFlag adds --state; what says what is done with the states.
func stateFlag(fs *pflag.FlagSet, to *[]string, what string) {
	fs.StringArrayVar(to, "state", nil, what+"; `NAME` may be a glob; repeatable")
}

// prepare reads what the common flags and the environment name.
func (e *Env) prepare(ctx context.Context) error {
	e.wrap()
	if e.common.jobs < 0 {
		return usagef("--jobs %d: must be 0 or more", e.common.jobs)
	}
	all := e.common.maps
	if s := e.Getenv("SPT_MAP"); s != "" && len(all) == 0 {
		all = strings.Split(s, ",")
	}
	for _, s := range all {
		m, err := format.ParseMapping(s)
		if err != nil {
			return usagef("--map: %v", err)
		}
		e.maps = append(e.maps, m)
	}
	e.follow = e.common.follow
	if s := e.Getenv("SPT_FOLLOW"); s != "" && len(e.follow) == 0 {
		e.follow = slices.DeleteFunc(strings.Split(s, ","), func(p string) bool { return p == "" })
	}
	if len(e.common.maps) > 0 {
		e.mapUse = &mapUse{fit: make([]bool, len(e.maps))}
	}
	names := e.common.names
	if names == "" {
		names = e.Getenv("SPT_NAMES")
	}
	if names == "" {
		return nil
	}
	uids, err := e.readNames(ctx, names)
	if err != nil {
		return err
	}
	for _, uid := range uids {
		e.run.LearnUID(uid)
	}
	return nil
}

// emptyFlag refuses a text flag that was given without any text: that is an
// unset variable of a shell, and to take it for no flag could turn a guard or a
// choice off without a word.
func emptyFlag(fs *pflag.FlagSet) error {
	var err error
	fs.Visit(func(f *pflag.Flag) {
		texts := []string{f.Value.String()}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			texts = many.GetSlice()
		} else if f.Value.Type() != "string" {
			return
		}
		if err == nil && slices.Contains(texts, "") {
			err = usagef("--%s is empty", f.Name)
		}
	})
	return err
}

// without refuses flags that would do nothing where something else is not given:
// a user who picks an operator expects that it was picked.
func without(what string, given *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if given.Changed(name) {
			return usagef("--%s does nothing without %s", name, what)
		}
	}
	return nil
}

// flagError is a command line that could not be read.
type flagError struct{ usageError }

// outputOf looks for -o in arguments that could not be read to the end.
func outputOf(args []string) ui.Output {
	var o ui.Output
	for i, a := range args {
		v, ok := strings.CutPrefix(a, "--output=")
		if !ok {
			v, ok = strings.CutPrefix(a, "-o=")
		}
		if !ok && (a == "-o" || a == "--output") && i+1 < len(args) {
			v, ok = args[i+1], true
		}
		if !ok && strings.HasPrefix(a, "-o") && len(a) > 2 {
			v, ok = a[2:], true
		}
		if ok && o.Set(v) != nil {
			return ui.OutputTable
		}
	}
	return o
}

func splitPath(s string) []string { return filepath.SplitList(s) }

// exactly and between say in words what is missing, or too much.
func exactly(n int, what string) cobra.PositionalArgs { return between(n, n, what) }

// between has no upper bound where hi is less than 0.
func between(lo, hi int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var msg string
		switch n := len(args); {
		case n < lo:
			msg = fmt.Sprintf("%s needs %s", cmd.CommandPath(), what)
		case hi >= 0 && n > hi:
			msg = fmt.Sprintf("%s takes %s, not %s", cmd.CommandPath(), what, ui.Plural(int64(n), "argument"))
		case slices.Contains(args, ""): // an unset variable, not a question what would be
			names := strings.Fields(cmd.Use)[1:]
			i := min(slices.Index(args, ""), len(names)-1)
			name, _, _ := strings.Cut(names[i], "|")
			msg = strings.Trim(name, "[].") + " is empty"
		default:
			return nil
		}
		return &flagError{usageError{msg: msg, hint: "usage:  " + cmd.UseLine()}}
	}
}
