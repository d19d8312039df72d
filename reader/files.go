package reader

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// FileState is a file that the snapshot refers to, with the result of its lookup.
type FileState struct {
	summary.File
	Found Found  // valid if There
	Err   error  // why it cannot be read; see Status
	Wrong string // how it differs from what the snapshot claims; "" if it does not
}

// FileStatus is what is known about the file of a reference.
type FileStatus string

// The states of a file. A file that is Refused or NotChecked may exist.
const (
	FileFound      FileStatus = "found"
	FileMissing    FileStatus = "missing"     // it does not exist: format.ErrMissing
	FileRefused    FileStatus = "outside"     // it is outside the directories whose files are read: an *OutsideError, format.ErrOutside
	FileNotChecked FileStatus = "not checked" // the lookup failed: a *NotCheckedError, format.ErrNotChecked
)

// statusOf returns what an error of Locate says about the file.
func statusOf(err error) FileStatus {
	switch {
	case err == nil:
		return FileFound
	case errors.Is(err, format.ErrOutside):
		return FileRefused
	case errors.Is(err, format.ErrNotChecked):
		return FileNotChecked
	}
	return FileMissing
}

// Status returns what is known about the file.
func (f FileState) Status() FileStatus { return statusOf(f.Err) }

// Missing reports whether the file does not exist. It is false if the lookup
// failed.
func (f FileState) Missing() bool { return f.Status() == FileMissing }

// There reports whether the file is known to exist: it was found, or it is
// outside and would be read if allowed.
func (f FileState) There() bool {
	var out *OutsideError
	return f.Err == nil || errors.As(f.Err, &out) && out.Exists
}

// Whole reports whether the file exists and has the recorded length.
func (f FileState) Whole() bool { return f.Err == nil && f.Wrong == "" }

// parallelLookups is the number of files looked up at once.
const parallelLookups = 16

// Files looks up every file of a summary of this snapshot, in its order. It opens
// none. The error is for a context that ended; a file that cannot be found has
// its own error.
func (s *Snapshot) Files(ctx context.Context, files []summary.File) ([]FileState, error) {
	all := make([]FileState, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelLookups)
	for i, f := range files {
		g.Go(func() error {
			st := &format.File{Path: format.NewText(f.Path), Relative: f.Relative, Length: -1}
			found, err := s.Locate(ctx, st)
			if err != nil && !format.NoFile(err) && !errors.Is(err, format.ErrUnsupported) {
				return err
			}
			all[i] = FileState{File: f, Found: found, Err: err}
			if all[i].There() {
				all[i].Wrong = f.Wrong(found.Info.Size)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return all, nil
}

// View returns the snapshot's savepoint and access to its bytes.
func (s *Snapshot) View() format.View {
	return format.View{Savepoint: s.Savepoint, Source: s.src, Codecs: s}
}

// Of returns the snapshot that a View came from, with the current savepoint of
// the View. It returns false for a View that package reader did not open.
func Of(v format.View) (*Snapshot, bool) {
	s, ok := v.Codecs.(*Snapshot)
	if !ok || v.Source != format.Source(s.src) {
		return nil, false
	}
	if v.Savepoint == s.Savepoint {
		return s, true
	}
	return s.With(v.Savepoint), true
}

// With returns the snapshot with another savepoint, whose streams it reads.
func (s *Snapshot) With(sp *format.Savepoint) *Snapshot {
	c := *s
	c.Savepoint = sp
	c.mapping = nil // the base closes it
	return &c
}

// Unchanged checks that the file that describes the snapshot, and the files of
// snapshots combined with it, have not changed since they were opened. If one
// has, the error is storage.ErrChanged.
//
// Objects of a Remote snapshot are read at one version, whatever replaces them. There
// it checks that the description had not changed when the files were looked up, without
// a request if its directory was listed then.
func (s *Snapshot) Unchanged(ctx context.Context) error {
	for _, o := range s.others {
		if err := o.Unchanged(ctx); err != nil {
			return err
		}
	}
	changed := &format.Error{File: s.Container.Name, Offset: -1, Msg: "it changed since it was opened", Err: format.ErrChanged}
	if same, known := s.src.unchanged(s.Container.Name); known && same {
		return nil
	} else if known {
		return changed
	}
	info, err := s.src.store.Stat(ctx, s.Container.Name)
	if err == nil && info.Version == s.src.version {
		return nil
	}
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	return changed
}

// Store returns the store of the snapshot's description.
func (s *Snapshot) Store() storage.Storage { return s.src.store }

// Describes reports whether sp is the unchanged model of the snapshot's
// container: then the container's bytes are its encoding.
func (s *Snapshot) Describes(sp *format.Savepoint) bool { return sp == s.asRead }

// OpenContainer streams the file that describes the snapshot, at the version
// that was opened.
func (s *Snapshot) OpenContainer(ctx context.Context) (io.ReadCloser, error) {
	body, _, err := ranged.NewReader(s.src.store, s.Container.Name, s.src.version).Open(ctx, 0, -1)
	return body, storageKind(err)
}

// AsRead returns the model of the snapshot's container, before any edit.
func (s *Snapshot) AsRead() *format.Savepoint { return s.asRead }
