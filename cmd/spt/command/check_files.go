package command

import (
	"context"
	"errors"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// maxSearches is for how many directories missing files are looked for elsewhere. A
// search lists hundreds of directories, and a snapshot can refer to any number.
const maxSearches = 8

// adviseMissing looks for missing files elsewhere, and adds the commands that find them.
func adviseMissing(ctx context.Context, snap *reader.Snapshot, groups *report.FileGroups, command, location string) error {
	for i, g := range groups.Missing() {
		names := g.Names
		if i >= maxSearches {
			names = nil
		}
		found, n, err := snap.Search(ctx, names)
		if err != nil {
			return err
		}
		groups.AdviseMissing(g, command, location, found, n)
	}
	return nil
}

// groupFiles returns the findings of verify as a person is shown them.
func groupFiles(ctx context.Context, env *Env, snap *reader.Snapshot, location string, all []finding.Finding) ([]report.Finding, error) {
	groups := env.run.NewFileGroups()
	for _, f := range all {
		groups.AddVerified(f)
	}
	if err := adviseMissing(ctx, snap, groups, "verify", location); err != nil {
		return nil, err
	}
	return env.run.NewFindings(groups.Findings()), nil
}

// filesChecked is what a restore would meet at the files of a snapshot.
type filesChecked struct {
	found      []finding.Finding
	cut        map[*format.Operator]bool // operators with a file that is not of the recorded length
	notChecked int
}

// checkFiles looks for the files that the restored operators need, at the locations
// where Flink will look for them when it restores the snapshot from at.
func checkFiles(ctx context.Context, env *Env, snap *reader.Snapshot, location string, ops []*format.Operator, at string) (*filesChecked, error) {
	dir, err := snap.URI(ctx)
	if err != nil {
		return nil, err
	}
	part := &format.Savepoint{Location: snap.Location, ID: snap.ID, Kind: snap.Kind, Operators: ops}
	s, err := summary.Of(ctx, part)
	if err != nil {
		return nil, err
	}
	states, err := snap.Files(ctx, s.Files)
	if err != nil {
		return nil, err
	}
	groups := env.run.NewFileGroups()
	var away *reader.OutsideError
	if errors.As(snap.Outside(), &away) {
		groups.AddOutside(reader.MetadataName, nil, away)
	}
	c := &filesChecked{}
	users := c.users(part, states)
	backend, claimed := fileref.BackendFiles(ops), false
	for _, f := range states {
		if !f.There() && !f.Missing() && !report.LeadsOutside(f) {
			c.notChecked++
		}
		// One of these files is there: those that are missing are of a savepoint.
		claimed = claimed || f.Relative && backend[f.Path] && f.Err == nil
	}
	owners := &fileOwners{snap: snap, dir: objpath.Clean(dir), at: objpath.Clean(at), owners: map[string]string{}}
	for _, f := range states {
		// Flink reads files outside the snapshot; their content was not looked at.
		var out *reader.OutsideError
		if f.There() && errors.As(f.Err, &out) {
			c.notChecked++
			f.Err = nil
			groups.AddOutside(f.Path, users[f.Path], out)
		}
		r := report.RestoredFile{FileState: f, User: users[f.Path], Claimed: claimed && f.Relative && backend[f.Path]}
		if r.Owner, err = owners.of(ctx, f); err != nil {
			return nil, err
		}
		if f.Err == nil && f.Found.Instead != "" {
			if _, _, err := env.Stores.Resolve(ctx, f.Path); errors.Is(err, storage.ErrUnsupported) {
				r.NoStore = true
			} else if err != nil {
				return nil, err
			}
		}
		groups.AddRestored(r)
	}
	if err := adviseMissing(ctx, snap, groups, "check", location); err != nil {
		return nil, err
	}
	c.found = groups.Findings()
	return c, nil
}

// users returns the operator that refers to a file, nil for several, and notes which
// have a file that is not of the recorded length.
func (c *filesChecked) users(sp *format.Savepoint, states []reader.FileState) map[string]*format.Operator {
	wrong := map[string]bool{}
	for _, f := range states {
		wrong[f.Path] = wrong[f.Path] || f.Wrong != ""
	}
	c.cut = map[*format.Operator]bool{}
	users := map[string]*format.Operator{}
	_ = sp.EachStream(func(p format.Place, st format.Stream) error {
		path, _, ok := format.Reference(st)
		if !ok {
			return nil
		}
		name := path.String()
		if wrong[name] {
			c.cut[p.Operator] = true
		}
		if user, known := users[name]; !known {
			users[name] = p.Operator
		} else if user != p.Operator {
			users[name] = nil
		}
		return nil
	})
	return users
}

// withoutCutShort leaves out that the state of an operator cannot be read where one of
// its files is not of the recorded length, which is the reason and has a finding. Other
// faults of its state have a path inside the snapshot, and stay.
func (c *filesChecked) withoutCutShort(all []finding.Finding) []finding.Finding {
	return slices.DeleteFunc(all, func(f finding.Finding) bool {
		return f.Code == "unreadable" && f.Place == "" && c.cut[f.Operator]
	})
}
