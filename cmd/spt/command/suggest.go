package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/expression"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage"
)

// nearMost is how many near names are suggested at most.
const nearMost = 3

// near returns the names that could have been meant by one that matches nothing,
// the nearest first: those that differ in a third of its letters or less, and
// those that contain it or are half of it.
func near(want string, names []string) []string {
	type candidate struct {
		name string
		far  int
	}
	var all []candidate
	wanted := []rune(strings.ToLower(want))
	for _, name := range names {
		letters := []rune(strings.ToLower(name))
		// The distance of long names costs the product of their lengths.
		if name == "" || len(wanted) == 0 || len(letters) > 200 || len(wanted) > 200 {
			continue
		}
		far := distance(wanted, letters)
		switch w, n := string(wanted), string(letters); {
		case far <= max(1, len(wanted)/3):
		case len(wanted) >= 3 && strings.Contains(n, w), len(letters) >= 3 && 2*len(letters) >= len(wanted) && strings.Contains(w, n):
			far += 100 // after those that look like slips
		default:
			continue
		}
		all = append(all, candidate{name, far})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name)) })
	all = slices.Compact(all)
	var out []string
	for _, c := range all[:min(len(all), nearMost)] {
		out = append(out, c.name)
	}
	return out
}

// distance counts the letters to insert, delete, replace or exchange with their
// neighbour that turn one word into the other.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// available is the hint of a name that matches nothing: the names near it, and
// those that there are. They are given as they are stored, and shown as --format
// says.
func (e *Env) available(want string, names []string, none string) string {
	if len(names) == 0 {
		return "available: " + none
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	return e.meant(want, names) + "available: " + report.Shorten(e.shown(names))
}

// meant asks whether one of the names near a selector, which may be a glob, was
// meant; it is "" where none is near, or else ends in a space.
func (e *Env) meant(want string, names []string) string {
	like := near(strings.Trim(want, "*?"), names)
	if len(like) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(e.shown(like), " or ") + "? "
}

// oneOf lists the words that can be used in place of one that cannot.
func oneOf(want string, words []string) string {
	list := "available: " + strings.Join(words, ", ")
	if like := near(want, words); len(like) > 0 {
		return "did you mean " + strings.Join(like, " or ") + "? " + list
	}
	return list
}

// didYouMean is the hint of a word of the command line or of an expression, or
// otherwise where nothing is near it.
func didYouMean(want string, names []string, before, otherwise string) string {
	like := near(want, names)
	if len(like) == 0 {
		return otherwise
	}
	for i, name := range like {
		like[i] = before + name
	}
	return "did you mean:  " + strings.Join(like, ", ")
}

// flagHint is the hint of a command line whose flags could not be read.
func flagHint(cmd *cobra.Command, err error) string {
	help := "help:  " + cmd.CommandPath() + " --help"
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return help
	}
	name := unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		if name == "v" { // of other programs, or of another command
			return "did you mean:  " + cmd.Root().Name() + " --version"
		}
		return help
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	var others []string
	for _, c := range cmd.Root().Commands() {
		if c != cmd && c.LocalNonPersistentFlags().Lookup(name) != nil {
			others = append(others, c.CommandPath())
		}
	}
	if len(others) > 0 {
		return "it is a flag of " + report.Shorten(others) + "; " + help
	}
	return didYouMean(name, names, "--", help)
}

// notCompiled is the error of an expression that is not valid, with the names that
// could be meant, or where they are listed.
func notCompiled(what string, err error, cmd string) error {
	hint := "names that can be used in it:  spt " + cmd + " --help"
	var e *expression.Error
	if errors.As(err, &e) && e.Unknown != "" {
		hint = didYouMean(e.Unknown, e.Known, "", hint)
	}
	return &usageError{what + ": " + err.Error(), hint}
}

// misfit returns the text of an expression that does not fit a value. Of a field that does
// not exist it names those that do, the near ones first.
func (e *Env) misfit(err error) string {
	var x *expression.Error
	if errors.As(err, &x) && x.Field {
		known := make([]string, len(x.Known))
		for i, name := range x.Known {
			known[i] = ui.Quote(e.hidden(name))
		}
		return x.Text + "; " + oneOf(x.Unknown, known) + " " + x.Position()
	}
	return err.Error()
}

// suggestPath adds to the error of a location that does not exist the names near it,
// in its directory or in the nearest directory above that does exist.
func (e *Env) suggestPath(ctx context.Context, location string, err error) error {
	if !errors.Is(err, storage.ErrNotExist) || len(location) > suggestPathMax {
		return err
	}
	for at := objpath.Clean(location); at != ""; at = objpath.Dir(at) {
		like, exists := e.nearPaths(ctx, at)
		if !exists && objpath.Dir(at) != at {
			continue
		}
		if len(like) == 0 {
			return err
		}
		hint := "did you mean:  " + strings.Join(like, ", ")
		if more := e.hintOf(err); more != "" {
			hint += "; " + more
		}
		return &hintedError{err, hint}
	}
	return err
}

// Bounds of looking for near paths: the bytes of one, and the names of a directory.
const (
	suggestPathMax = 4096
	suggestListMax = 10_000
)

// nearPaths returns what is near a location in its directory, and reports whether
// there is anything in that directory.
func (e *Env) nearPaths(ctx context.Context, location string) (like []string, exists bool) {
	store, key, err := e.Stores.Resolve(ctx, location)
	if err != nil {
		return nil, false
	}
	prefix := ""
	if dir := objpath.Dir(key); dir != "" {
		prefix = strings.TrimSuffix(dir, "/") + "/"
	}
	var names []string
	for info, err := range store.List(ctx, prefix, "/") {
		if err != nil || len(names) == suggestListMax {
			break
		}
		names = append(names, objpath.Base(strings.TrimSuffix(info.Name, "/")))
	}
	for _, name := range near(objpath.Base(key), names) {
		like = append(like, ui.Quote(objpath.Join(objpath.Dir(location), name)))
	}
	return like, len(names) > 0
}
