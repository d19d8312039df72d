package command

import (
	"context"
	"errors"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/transform"
)

// mover decides what becomes of relative references.
type mover struct {
	ctx  context.Context
	env  *Env
	snap *reader.Snapshot
	all  bool // also where the file is not at the new location

	files map[string]*summary.File // by relative name
	found report.Relocation
}

// below moves files below a directory.
func (m *mover) below(base string) func(name string) (string, bool, error) {
	return func(name string) (string, bool, error) {
		return m.decide(name, strings.TrimSuffix(base, "/")+"/"+name)
	}
}

// mapped moves files that are not next to _metadata to where a mapping leads.
func (m *mover) mapped(name string) (string, bool, error) {
	to, ok := m.snap.MapRelative(m.ctx, name, m.env.maps)
	if !ok {
		return "", false, nil
	}
	found, err := m.snap.Locate(m.ctx, &format.File{Path: format.NewText(name), Relative: true, Length: -1})
	if err == nil && found.Store == m.snap.Store() && objpath.Dir(found.Name) == m.snap.Dir() {
		return "", false, nil
	}
	if err := m.ctx.Err(); err != nil {
		return "", false, err
	}
	if strings.HasPrefix(to, "/") {
		to = "file:" + to
	}
	return m.decide(name, to)
}

// decide goes by whether a file is at its new location.
func (m *mover) decide(name, to string) (string, bool, error) {
	var info storage.Info
	scheme, _ := objpath.Split(to)
	err := m.found.Unreached
	if err == nil {
		var store storage.Storage
		var object string
		if store, object, err = m.env.Stores.Resolve(m.ctx, to); err == nil {
			info, err = m.snap.Stat(m.ctx, store, object)
		}
	}
	switch {
	case err == nil:
		if f := m.files[name]; f != nil && f.Wrong(info.Size) != "" {
			m.found.Wrong = append(m.found.Wrong, to+": "+f.Wrong(info.Size))
		}
		return to, true, nil
	case m.ctx.Err() != nil:
		return "", false, err
	case !errors.Is(err, storage.ErrNotExist) && (scheme != "" && scheme != "file" || errors.Is(err, storage.ErrUnsupported)):
		// The machine may have no access to the store that the snapshot is moved to.
		m.found.Unchecked++
		m.found.Unreached = err
		return to, true, nil
	case !errors.Is(err, storage.ErrNotExist):
		return "", false, err
	case m.all:
		m.found.Gone = append(m.found.Gone, to)
		return to, true, nil
	}
	return to, false, nil
}

// look finds out where the files of relative references are that were kept.
func (m *mover) look(kept []transform.Relocated) error {
	for _, k := range kept {
		_, err := m.snap.Locate(m.ctx, &format.File{Path: format.NewText(k.From), Relative: true, Length: -1})
		switch {
		case err == nil:
			m.found.Right = append(m.found.Right, k)
		case m.ctx.Err() != nil:
			return err
		default:
			m.found.Broken = append(m.found.Broken, k)
		}
	}
	return nil
}
