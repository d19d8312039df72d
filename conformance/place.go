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

// neutral is the folder that fixtures name in their absolute paths: every
// machine can have it, so no machine's own path gets into a file.
const neutral = "/spt-fixtures"

var base struct {
	once   sync.Once
	dir    string
	err    error
	lock   *os.File // held until the process ends
	places atomic.Int64
}

// Base is the folder below which snapshots stand while Flink makes or restores
// them: /spt-fixtures, or, where that cannot be made, a temporary one. Then
// Neutral is false, and snapshots with absolute paths below /spt-fixtures cannot
// be restored.
func Base() (dir string, isNeutral bool, err error) {
	err = lockBase()
	return base.dir, base.dir == neutral, err
}

// lockBase finds the base folder and keeps other processes out of it.
func lockBase() error {
	base.once.Do(func() {
		base.dir = neutral
		if os.MkdirAll(neutral, 0o755) != nil || !writable(neutral) {
			base.dir = filepath.Join(os.TempDir(), "spt-fixtures")
			base.err = os.MkdirAll(base.dir, 0o755)
		}
		if base.err == nil {
			base.err = lock(filepath.Join(os.TempDir(), "spt-conformance.lock"))
		}
	})
	return base.err
}

func lock(name string) (err error) {
	base.lock, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	return exclusive(base.lock, func() {
		fmt.Fprintln(os.Stderr, "conformance: waiting for another process that uses Flink")
	})
}

// RemoveBase leaves no trace of the base folder, unless others use it.
func RemoveBase() {
	if base.dir != "" {
		_ = os.Remove(base.dir) // fails when it is not empty, and should
	}
}

// newPlace names a folder below the base that is free.
func newPlace() (string, error) {
	dir, _, err := Base()
	return filepath.Join(dir, fmt.Sprintf("case-%d", base.places.Add(1))), err
}

// checkPlace refuses to use, and later remove, anything but a folder below the base.
func checkPlace(at string) error {
	dir, _, err := Base()
	if err != nil {
		return err
	}
	rest, below := strings.CutPrefix(at, dir+"/")
	if !below || rest == "" || rest != filepath.Clean(rest) || strings.HasPrefix(rest, ".") {
		return fmt.Errorf("%s is not below %s", at, dir)
	}
	return nil
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

// copyFile copies a file; it appears whole or not at all, since tests of other
// packages may follow the absolute paths of the same snapshot at this moment.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	part := to + ".part"
	out, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(part, to)
}
