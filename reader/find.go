package reader

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// find looks for the file that describes the snapshot at a location. It returns
// the first that exists: the directory's _metadata, the file itself, and for a
// bare name NAME.spt, then the same in the directories of the search path.
func find(ctx context.Context, location string, o Options) (*found, error) {
	if location == "" {
		return nil, advise(format.Errorf(format.ErrMissing, "no snapshot named"), "give the directory of a snapshot, its _metadata or an .spt file")
	}
	locations := []string{location}
	if isBare(location) {
		locations = append(locations, location+Extension)
		for _, dir := range o.Path {
			locations = append(locations, objpath.Join(dir, location), objpath.Join(dir, location+Extension))
		}
	}
	var first error
	for i, location := range locations {
		f, err := findAt(ctx, location, o)
		if err == nil {
			return f, nil
		}
		if i == 0 {
			first = err
		}
		if !errors.Is(err, storage.ErrNotExist) {
			return nil, err
		}
	}
	if err := movedAside(ctx, location, o); err != nil {
		return nil, err
	}
	return nil, notThere(location, locations, first)
}

func isBare(location string) bool { return !strings.ContainsAny(location, `/\:`) }

// findAt looks at one location. If nothing is there, the error is
// storage.ErrNotExist.
func findAt(ctx context.Context, location string, o Options) (*found, error) {
	location = objpath.WithoutEntropy(location)
	store, name, err := o.Stores.Resolve(ctx, location)
	if err != nil {
		return nil, err
	}
	name = objpath.Clean(name)
	if hasSecrets(location) {
		location = name // by which the store finds it, too
	}
	f := &found{store: store, location: objpath.Clean(location)}
	// Most names are directories, but a file can have any name. Each try costs a
	// request, so the likelier one is first.
	dir, file := objpath.Join(name, MetadataName), name
	tries := []string{dir, file}
	switch {
	case objpath.Base(name) == MetadataName:
		tries = []string{file}
	case isSnapshotName(name):
		tries = []string{file, dir}
	}
	for _, try := range tries {
		if err = f.read(ctx, try); !errors.Is(err, storage.ErrNotExist) {
			break
		}
	}
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return nil, notSnapshot(ctx, o, store, name, location, err)
	case err != nil:
		return nil, storageKind(err)
	}
	f.chosen = f.name == file
	if f.family = f.sniff(); f.family != SPT && f.name == file {
		f.location = parentLocation(f.location) // the directory that the file describes
	}
	if f.family == "" {
		return nil, f.notOurs(ctx)
	}
	return f, nil
}

// parentLocation returns the directory of a location, "." for a bare name.
func parentLocation(location string) string {
	if dir := objpath.Dir(location); dir != "" {
		return dir
	}
	return "."
}

// read does the first read of a file.
func (f *found) read(ctx context.Context, name string) error {
	rd := ranged.NewReader(f.store, name, "")
	head, err := rd.ReadRange(ctx, 0, headSize)
	if err != nil {
		return err
	}
	info, err := rd.Stat(ctx) // known from the read
	if err != nil {
		return err
	}
	f.rd, f.name, f.head, f.info = rd, name, head, info
	return nil
}

var flinkMagic = []byte{0x49, 0x60, 0x67, 0x2d}

// sniff determines the family by the first bytes; "" is neither.
func (f *found) sniff() Family {
	switch {
	case bytes.HasPrefix(f.head, flinkMagic):
		return Flink
	case spt.Sniff(f.head):
		return SPT
	}
	return ""
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) }

// listing is the objects and directories directly in a directory.
type listing struct {
	files       []storage.Info
	directories []string // names, without the slash
}

func list(ctx context.Context, store storage.Storage, dir string) (listing, error) {
	var l listing
	for info, err := range store.List(ctx, objpath.Prefix(dir), "/") {
		if err != nil {
			return l, err
		}
		if strings.HasSuffix(info.Name, "/") {
			l.directories = append(l.directories, objpath.Base(strings.TrimSuffix(info.Name, "/")))
		} else {
			l.files = append(l.files, info)
		}
	}
	return l, nil
}

func (l listing) has(name string) bool {
	return slices.ContainsFunc(l.files, func(i storage.Info) bool { return objpath.Base(i.Name) == name })
}
