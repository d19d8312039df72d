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
// same on every machine, so that no path of a machine gets into a file, and it
// does not exist: what Flink reads and writes below it is stored in a temporary
// directory of this process (FixtureFileSystem.java). So processes that read the
// same snapshots at the same time never find half a snapshot there.
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

// RemoveBase removes the directory and everything in it.
func RemoveBase() error {
	if base.dir == "" {
		return nil
	}
	return os.RemoveAll(base.dir)
}

// newDirectory returns an unused directory below /spt-fixtures.
func newDirectory() string {
	return fmt.Sprintf("%s/case-%d", named, base.places.Add(1))
}

// storedAt returns the directory in which the files below one of /spt-fixtures are
// stored. It refuses any other directory, because the files are removed after use.
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
