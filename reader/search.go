package reader

import (
	"context"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
)

// maxSearched bounds how many directories Search lists.
const maxSearched = 500

// Search looks for files by name near a local snapshot: in the directories of its
// job and two levels below the parent of the job's directory. It returns the
// directory that has most of them, in the spelling of a mapping, and how many it
// has. It opens no file. If the snapshot is not local, dir is "".
func (s *Snapshot) Search(ctx context.Context, names []string) (dir string, n int, err error) {
	store := s.src.store
	c, ok := store.(ability.Canonicalizer)
	if !ok || len(names) == 0 {
		return "", 0, nil
	}
	home := s.src.dir
	if home == "" {
		home = "."
	}
	home, err = c.Canonical(ctx, home)
	if err != nil {
		return "", 0, err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	job := objpath.Dir(home)
	type level struct {
		dir   string
		below int
	}
	queue := []level{{job, 1}}
	if root := objpath.Dir(job); root != job && root != "" && root != "/" {
		queue = append(queue, level{root, 2})
	}
	seen := map[string]bool{home: true}
	for listed := 0; len(queue) > 0 && listed < maxSearched; listed++ {
		at := queue[0]
		queue = queue[1:]
		if seen[at.dir] {
			continue
		}
		seen[at.dir] = true
		l, err := list(ctx, store, at.dir)
		if ctx.Err() != nil {
			return "", 0, ctx.Err()
		}
		if err != nil {
			continue // what cannot be listed is not suggested
		}
		hits := 0
		for _, f := range l.files {
			if wanted[objpath.Base(f.Name)] {
				hits++
			}
		}
		if hits > n {
			dir, n = at.dir, hits
		}
		if at.below > 0 {
			for _, name := range l.directories {
				queue = append(queue, level{objpath.Join(at.dir, name), at.below - 1})
			}
		}
	}
	return dir, n, nil
}

// missingBackend holds the missing files of RocksDB until it is known whether all
// are missing.
type missingBackend struct {
	names   map[string]bool
	found   bool
	missing []finding.Finding
}

// hold defers the finding of a missing file; it reports whether it did.
func (m *missingBackend) hold(ref reference, f finding.Finding) bool {
	if !ref.relative || !m.names[ref.path] {
		return false
	}
	m.missing = append(m.missing, f)
	return true
}

// backendFindings reports the deferred findings.
func (v *verifier) backendFindings() {
	for _, f := range v.backend.missing {
		if v.backend.found {
			f.Code = "claimed-native"
			f.Message += ": " + fileref.ClaimedNative
			f.Advice = []finding.Remedy{{Words: "if the savepoint is somewhere else, look there", Action: finding.MapFiles, Locations: []string{"."}},
				{Words: "rewrite only what is missing", Also: true, Action: finding.WriteMapping, Locations: []string{"."}}}
		}
		v.emit(f)
	}
}
