package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform/check"
)

// fileFinding gathers the files of one folder with which the same is wrong.
type fileFinding struct {
	check.Finding
	names         []string // a few of the files
	files         int
	what, andThen string // "3 files WHAT, such as EXAMPLE; AND THEN"
	dir           string // of the references; "" for those next to _metadata
}

// text is the message of the finding.
func (f *fileFinding) text(env *Env) string {
	text := fmt.Sprintf("%s %s", ui.Plural(int64(f.files), "file"), f.what)
	if f.files > 1 {
		text += ", such as " + ui.Quote(env.run.Text(f.names[0]))
	} else {
		text += ", " + ui.Quote(env.run.Text(f.names[0]))
	}
	if f.andThen != "" {
		text += "; " + f.andThen
	}
	return text
}

// maxSearches is of how many folders missing files are looked for elsewhere. A
// search lists hundreds of directories, and a snapshot can name any number.
const maxSearches = 8

// searchFor returns what of the names of the nth folder is looked for.
func searchFor(n int, names []string) []string {
	if n >= maxSearches {
		return nil
	}
	return names
}

// maxNames is how many names of missing files are kept to look for them.
const maxNames = 64

// folderText is where the files of references are meant to be.
func folderText(env *Env, dir string) string {
	if dir == "" {
		return "next to _metadata"
	}
	return "in " + ui.Quote(env.run.Text(dir))
}

// mapAdvice is how files of a folder are found elsewhere: complete commands. OLD
// is that folder; NEW is where most of them are, if somebody saw them.
func mapAdvice(ctx context.Context, env *Env, snap *reader.Snapshot, location, command, dir string, names []string) ([]finding.Remedy, error) {
	old := strings.TrimSuffix(dir, "/")
	if dir == "" {
		old = "."
	}
	found, n, err := snap.Search(ctx, names)
	if err != nil {
		return nil, err
	}
	option := "--map " + shell.Quote(env.run.Text(old)+"=DIR")
	if found == "" {
		return finding.Words(fmt.Sprintf("if there is a copy in DIR:  spt %s %s %s\nto write that down:  spt relocate %s OUT %s", command, shell.Quote(location), option, shell.Quote(location), option)), nil
	}
	option = "--map " + shell.Quote(env.run.Text(old)+"="+found)
	is := "them are"
	if len(names) == 1 {
		is = "it is"
	} else if n == len(names) {
		is = "all of " + is
	} else {
		is = fmt.Sprintf("%d of ", n) + is
	}
	return finding.Words(fmt.Sprintf("%s in %s:  spt %s %s %s\nto write that down:  spt relocate %s OUT %s", is, ui.Quote(found), command, shell.Quote(location), option, shell.Quote(location), option)), nil
}

// checkFiles looks for the files that the restored operators need, at the places
// where Flink will look for them when it restores the snapshot from at. cut has the
// operators with a file that is not as long as promised.
func checkFiles(ctx context.Context, env *Env, snap *reader.Snapshot, location string, ops []*format.Operator, at string) (found []check.Finding, cut map[*format.Operator]bool, notChecked int, err error) {
	folder, err := snap.URI(ctx)
	if err != nil {
		return nil, nil, 0, err
	}
	part := &format.Savepoint{Location: snap.Location, ID: snap.ID, Kind: snap.Kind, Operators: ops}
	s, err := summary.Of(ctx, part)
	if err != nil {
		return nil, nil, 0, err
	}
	states, err := snap.Files(ctx, s.Files)
	if err != nil {
		return nil, nil, 0, err
	}
	c := fileChecker{env: env, snap: snap, found: map[[3]string]*fileFinding{}, users: map[string]*format.Operator{}, folder: route.Clean(folder), at: route.Clean(at), owners: map[string]string{}}
	var away *reader.OutsideError
	if errors.As(snap.Outside(), &away) {
		c.outside(reader.FileState{File: summary.File{Path: reader.MetadataName, Relative: true}}, away)
	}
	wrong := map[string]bool{}
	for _, f := range states {
		if f.Wrong != "" {
			wrong[f.Path] = true
		}
	}
	cut = map[*format.Operator]bool{}
	_ = part.EachStream(func(p format.Place, st format.Stream) error {
		path, _, ok := format.Reference(st)
		if !ok {
			return nil
		}
		name := path.String()
		if wrong[name] {
			cut[p.Operator] = true
		}
		if user, known := c.users[name]; !known {
			c.users[name] = p.Operator
		} else if user != p.Operator {
			c.users[name] = nil // of several
		}
		return nil
	})
	backend := reader.BackendFiles(ops)
	for _, f := range states {
		if !f.There() && !f.Missing() && !leadsOutside(f) {
			notChecked++
		}
		c.claimed = c.claimed || f.Relative && backend[f.Path] && f.Err == nil
	}
	for _, f := range states {
		// Flink reads what is outside the snapshot; what is in it was not looked at.
		var out *reader.OutsideError
		if f.There() && errors.As(f.Err, &out) {
			notChecked++
			f.Err = nil
			c.outside(f, out)
		}
		if err := c.file(ctx, f, backend); err != nil {
			return nil, nil, 0, err
		}
	}
	searches := 0
	for _, f := range c.order {
		f.Message = f.text(env)
		if f.Code == "file-missing" || f.Code == "claimed-native" {
			if f.Advice, err = mapAdvice(ctx, env, snap, location, "check", f.dir, searchFor(searches, f.names)); err != nil {
				return nil, nil, 0, err
			}
			searches++
		}
		found = append(found, f.Finding)
	}
	return found, cut, notChecked, nil
}

// withoutCutShort leaves out that the state of an operator cannot be read where one
// of its files is not as long as promised, which is the reason and a finding of its
// own. What else is wrong with its state has a place in the snapshot and stays.
func withoutCutShort(all []check.Finding, cut map[*format.Operator]bool) []check.Finding {
	return slices.DeleteFunc(all, func(f check.Finding) bool {
		return f.Code == "unreadable" && f.Place == "" && cut[f.Operator]
	})
}

type fileChecker struct {
	env   *Env
	snap  *reader.Snapshot
	order []*fileFinding
	found map[[3]string]*fileFinding // by code, folder and what is wrong
	users map[string]*format.Operator

	claimed bool // a relative file of RocksDB is there: those that are missing are of a savepoint

	folder string            // of the snapshot, as Flink would name it
	at     string            // where Flink will restore it from
	owners map[string]string // by folder, "" where no other snapshot has it
}

func (c *fileChecker) file(ctx context.Context, f reader.FileState, backend map[string]bool) error {
	dir, _ := report.SplitName(f.Path)
	owner, err := c.owner(ctx, f)
	if err != nil {
		return err
	}
	quoted := ui.Quote(c.env.run.Text(owner))
	where := folderText(c.env, dir)
	add := func(severity finding.Severity, code, what, andThen string, advice ...finding.Remedy) {
		c.add(f, severity, code, what, andThen, advice...)
	}
	var unchecked *reader.NotCheckedError
	switch {
	case errors.As(f.Err, &unchecked) && unchecked.Scheme != "":
		add(finding.Note, "file-not-checked", fmt.Sprintf("not checked %s (%s: is not supported here)", where, unchecked.Scheme), "")
	case errors.As(f.Err, &unchecked):
		add(finding.Warning, "file-not-checked", fmt.Sprintf("not checked %s (%s)", where, reason(unchecked.Err)), "")
	case leadsOutside(f):
		add(finding.Error, "path", "named by a relative reference that leads outside the snapshot and is not followed", "")
	case errors.Is(f.Err, format.ErrOutside):
		var out *reader.OutsideError
		if errors.As(f.Err, &out) {
			c.outside(f, out)
		}
	case errors.Is(f.Err, storage.ErrNotExist) && owner != "":
		add(finding.Error, "file-gone", "missing "+where, "that is the folder of another snapshot, which took them along when it was deleted",
			finding.Remedy{Words: "find a copy of " + quoted + " and say where", Action: finding.MapFiles}, finding.Remedy{Words: "take another snapshot"})
	case errors.Is(f.Err, storage.ErrNotExist) && f.Relative && backend[f.Path] && c.claimed:
		add(finding.Error, "claimed-native", "missing "+where, reader.ClaimedNative)
	case errors.Is(f.Err, storage.ErrNotExist):
		add(finding.Error, "file-missing", "missing "+where, "")
	case f.Err != nil:
		add(finding.Error, "path", where+" that Flink writes no reference to", reason(f.Err))
	case f.Wrong != "":
		add(finding.Error, "file-length", where+" not of the recorded length", f.Wrong, finding.Remedy{Words: "it was cut, or is another file: copy it again"})
	case f.Found.Instead != "":
		severity := finding.Error
		if _, _, err := c.env.Stores.Resolve(ctx, f.Path); errors.Is(err, storage.ErrUnsupported) {
			severity = finding.Warning // they may well be there too
		} else if err != nil {
			return err
		}
		add(severity, "file-elsewhere", "not found "+where, "found below the folder of the snapshot or its job instead, where Flink does not look",
			finding.Remedy{Words: "to copy it with its files, without absolute references", Action: finding.Copy})
	case owner != "":
		add(finding.Warning, "file-of-another", where, "that is the folder of another snapshot: when it is deleted, this one no longer restores",
			finding.Remedy{Words: "keep " + quoted}, finding.Remedy{Words: "make a copy that needs no other snapshot", Action: finding.Copy})
	}
	return nil
}

// leadsOutside reports whether the reference is relative and not a file name.
// Flink writes no such reference; the file was not looked for.
func leadsOutside(f reader.FileState) bool {
	return f.Relative && errors.Is(f.Err, format.ErrOutside) && !reader.IsPlainName(f.Path)
}

// outside says that the content of a file was not looked at.
func (c *fileChecker) outside(f reader.FileState, out *reader.OutsideError) {
	dir, _ := report.SplitName(f.Path)
	c.add(f, finding.Note, "file-outside", folderText(c.env, dir), "that is outside the snapshot and its checkpoint directory, so their content was not checked", out.Remedies()...)
}

// add counts a file for a finding.
func (c *fileChecker) add(f reader.FileState, severity finding.Severity, code, what, andThen string, advice ...finding.Remedy) {
	dir, name := report.SplitName(f.Path)
	key := [3]string{code, dir, what}
	found := c.found[key]
	if found == nil {
		found = &fileFinding{what: what, andThen: andThen, dir: dir}
		found.Finding = check.Finding{Severity: severity, Code: code, Operator: c.users[f.Path], Advice: advice}
		c.found[key] = found
		c.order = append(c.order, found)
	}
	if len(found.names) < maxNames {
		found.names = append(found.names, name)
	}
	if found.files++; c.users[f.Path] != found.Operator {
		found.Operator = nil // of several
	}
}

func reason(err error) string { return report.Reason(err) }

var (
	checkpointFolder = regexp.MustCompile(`^chk-([0-9]+)$`)
	savepointFolder  = regexp.MustCompile(`^savepoint-[0-9a-f]{6}-[0-9a-f]{12}$`)
)

// owner names the folder of another snapshot in which a file lies, or "". What
// is shared between checkpoints lies in none: Flink deletes it when nothing refers
// to it any more; but the folder of a snapshot goes as a whole.
func (c *fileChecker) owner(ctx context.Context, f reader.FileState) (string, error) {
	dir := route.Dir(f.Path)
	if f.Relative || dir == c.at {
		return "", nil
	}
	name := route.Base(dir)
	checkpoint, savepoint := checkpointFolder.FindStringSubmatch(name), savepointFolder.MatchString(name)
	if f.Err != nil || f.Found.Instead != "" {
		// There is only the name to go by, and one that the snapshot's own folder
		// could have had may be where that was.
		if checkpoint != nil && checkpoint[1] != fmt.Sprint(c.snap.ID) || savepoint && name != route.Base(route.Clean(c.snap.Location)) {
			return name, nil
		}
		return "", nil
	}
	owner, known := c.owners[dir]
	if known {
		return owner, nil
	}
	own, err := c.isOwn(ctx, f.Found)
	if err != nil {
		return "", err
	}
	switch {
	case own:
	case checkpoint != nil || savepoint:
		owner = name
	default:
		_, err := f.Found.Store.Stat(ctx, route.Join(route.Dir(f.Found.Name), reader.MetadataName))
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if err == nil {
			owner = name
		}
	}
	c.owners[dir] = owner
	return owner, nil
}

// isOwn reports whether a file lies in the snapshot's own folder.
func (c *fileChecker) isOwn(ctx context.Context, f reader.Found) (bool, error) {
	dir := route.Dir(f.Name)
	if f.Store == c.snap.Store() && dir == route.Dir(c.snap.Container.Name) {
		return true, nil
	}
	uri := route.Dir(f.URI)
	if s, ok := f.Store.(storage.Canonicalizer); ok {
		if dir == "" {
			dir = "."
		}
		path, err := s.Canonical(ctx, dir)
		if err != nil {
			return false, err
		}
		uri = "file:" + path
	}
	return uri == c.folder, nil
}

// byFolder shows the findings of verify to a person: files of one folder with
// which the same is wrong are one, in the words of check.
func byFolder(ctx context.Context, env *Env, snap *reader.Snapshot, location string, all []finding.Finding) ([]report.Finding, error) {
	var rows []report.Finding
	groups := map[[2]string]*fileFinding{}
	var order []*fileFinding
	at := map[*fileFinding]int{}
	for _, f := range all {
		var what, andThen string
		dir, name := report.SplitName(f.File)
		switch where := folderText(env, dir); f.Code {
		case "file-missing":
			what = "missing " + where
			if !strings.HasSuffix(f.Message, " is missing") { // the store says more
				what += ": " + f.Message
			}
		case "claimed-native":
			what, andThen = "missing "+where, reader.ClaimedNative
		case "file-not-checked":
			_, why, _ := strings.Cut(f.Message, " was not checked: ")
			what = fmt.Sprintf("not checked %s (%s)", where, why)
		case "file-outside":
			what = where + " outside the snapshot and its checkpoint directory, so not read"
		case "file-elsewhere":
			to, _ := report.SplitName(f.Found)
			what = fmt.Sprintf("found in %s, not %s, where Flink looks", ui.Quote(to), where)
		default:
			rows = append(rows, env.finding(f))
			continue
		}
		g := groups[[2]string{f.Code, what}]
		if g == nil {
			g = &fileFinding{Finding: f, what: what, andThen: andThen, dir: dir}
			g.File, g.Found, g.Place = "", "", ""
			groups[[2]string{f.Code, what}] = g
			at[g] = len(rows)
			order = append(order, g)
			rows = append(rows, report.Finding{})
		}
		g.files++
		if len(g.names) < maxNames {
			g.names = append(g.names, name)
		}
		if g.Operator != f.Operator {
			g.Operator = nil // of several
		}
	}
	searches := 0
	for _, g := range order {
		g.Message = g.text(env)
		if g.Code == "file-missing" || g.Code == "claimed-native" {
			var err error
			if g.Advice, err = mapAdvice(ctx, env, snap, location, "verify", g.dir, searchFor(searches, g.names)); err != nil {
				return nil, err
			}
			searches++
		}
		rows[at[g]] = env.finding(g.Finding)
	}
	return rows, nil
}
