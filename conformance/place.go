package conformance

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// named is the directory that snapshots name in their absolute paths. It is the
// same on every machine, so that no machine's own path gets into a file, and it
// exists nowhere: what Flink reads and writes below it is stored in a temporary
// directory of this process (FixtureFileSystem.java). So other processes, which
// read the same snapshots, do not find half a snapshot there.
const named = "/spt-fixtures"

var base struct {
	once   sync.Once
	dir    string
	err    error
	places atomic.Int64
}

// Base returns the directory in which files below /spt-fixtures are stored.
func Base() (string, error) {
	base.once.Do(func() { base.dir, base.err = os.MkdirTemp("", "spt-conformance-base-") })
	return base.dir, base.err
}

// RemoveBase removes the directory and all that is left in it.
func RemoveBase() error {
	if base.dir == "" {
		return nil
	}
	return os.RemoveAll(base.dir)
}

// newPlace names a directory below /spt-fixtures that is free.
func newPlace() string {
	return fmt.Sprintf("%s/case-%d", named, base.places.Add(1))
}

// storedAt returns where the files of a place are stored. It refuses anything but a
// directory below /spt-fixtures: what is there is removed after use.
func storedAt(place string) (string, error) {
	dir, err := Base()
	if err != nil {
		return "", err
	}
	rest, below := strings.CutPrefix(place, named+"/")
	if !below || rest == "" || rest != filepath.Clean(rest) || strings.HasPrefix(rest, ".") {
		return "", fmt.Errorf("%s is not below %s", place, named)
	}
	return filepath.Join(dir, rest), nil
}

// copyTree copies a directory to one that does not exist yet, or is empty.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rest)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
