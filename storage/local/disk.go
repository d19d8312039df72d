package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/storage"
)

// disk makes the system calls that change something. Each calls package fault
// first, so that a test can stop between any two of them.
type disk struct{ ctx context.Context }

func (d disk) mkdir(name string) error {
	if err := fault.At(d.ctx, "mkdir", name); err != nil {
		return err
	}
	return os.Mkdir(name, 0o777)
}

// create makes a new file.
func (d disk) create(name string) (*os.File, error) {
	if err := fault.At(d.ctx, "create", name); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

func (d disk) write(f *os.File, p []byte) (int, error) {
	if err := fault.At(d.ctx, "write", f.Name()); err != nil {
		return 0, err
	}
	return f.Write(p)
}

// copy lets the kernel move bytes into f.
func (d disk) copy(f *os.File, r io.Reader) (int64, error) {
	if err := fault.At(d.ctx, "copy", f.Name()); err != nil {
		return 0, err
	}
	return f.ReadFrom(r) // knows copy_file_range
}

func (d disk) sync(f *os.File) error {
	if err := fault.At(d.ctx, "sync", f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

// syncDirectory makes the names in a directory durable.
func (d disk) syncDirectory(dir string) error {
	if err := fault.At(d.ctx, "sync directory", dir); err != nil {
		return err
	}
	return syncDirectory(dir)
}

func (d disk) link(old, new string) error {
	if err := fault.At(d.ctx, "link", new); err != nil {
		return err
	}
	return os.Link(old, new)
}

func (d disk) remove(name string) error {
	if err := fault.At(d.ctx, "remove", name); err != nil {
		return err
	}
	return os.Remove(name)
}

// removeIn removes a name from an open directory.
func (d disk) removeIn(dir *os.Root, name string) error {
	if err := fault.At(d.ctx, "remove", name); err != nil {
		return err
	}
	return dir.Remove(name)
}

// removeAll removes a file, or a directory and its content. It follows no links.
func (d disk) removeAll(name string) error {
	if fi, err := os.Lstat(name); err == nil && fi.IsDir() {
		entries, err := os.ReadDir(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			below := name + string(os.PathSeparator) + e.Name()
			if err := fault.At(d.ctx, "remove", below); err != nil {
				return err
			}
			if err := os.RemoveAll(below); err != nil {
				return err
			}
		}
	}
	err := d.remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d disk) rename(old, new string) error {
	if err := fault.At(d.ctx, "rename", new); err != nil {
		return err
	}
	return os.Rename(old, new)
}

// renameOnto renames a file, or a directory onto an empty one.
func (d disk) renameOnto(old, new string) error {
	if err := fault.At(d.ctx, "rename", new); err != nil {
		return err
	}
	return renameOnto(old, new)
}

// renameNoReplace renames, but never onto an existing name; errors.ErrUnsupported
// if the system or the file system cannot.
func (d disk) renameNoReplace(old, new string) error {
	if err := fault.At(d.ctx, "rename new", new); err != nil {
		return err
	}
	return renameNoReplace(old, new)
}

// exchange swaps two names atomically; errors.ErrUnsupported if the system or the
// file system cannot.
func (d disk) exchange(a, b string) error {
	if err := fault.At(d.ctx, "exchange", b); err != nil {
		return err
	}
	return exchange(a, b)
}

// replace renames a temporary file onto a file of the given version. temp is the
// file left to remove after an error, "" for none.
func (d disk) replace(temp, name string, old storage.Version) (left string, err error) {
	is := func(path string) bool {
		fi, err := os.Lstat(path)
		return err == nil && fi.Mode().IsRegular() && describe(path, fi).Version == old
	}
	if !is(name) {
		return temp, storage.ErrChanged
	}
	switch err := d.exchange(temp, name); {
	case errors.Is(err, errors.ErrUnsupported):
		if err := d.rename(temp, name); err != nil {
			return temp, err
		}
		return "", nil
	case err != nil:
		return temp, err
	}
	if !is(temp) { // another file had replaced it: undo
		if err := d.exchange(temp, name); err != nil {
			return "", fmt.Errorf("%w; what was replaced is under %s: %w", storage.ErrChanged, temp, err)
		}
		return temp, storage.ErrChanged
	}
	return temp, nil
}

// publish renames a temporary file to its name.
func (d disk) publish(temp, name string, ifAbsent bool) error {
	if ifAbsent {
		return d.moveExclusive(temp, name, false)
	}
	return d.rename(temp, name)
}

// moveExclusive renames, but never onto an existing name. If the system has no
// such call, it links the file to the new name and removes the old one; without
// links, it reserves the new name with an empty file or directory, which the
// rename then replaces: the process that created it wins.
func (d disk) moveExclusive(old, new string, isDir bool) error {
	if err := d.renameNoReplace(old, new); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return d.moveWithoutCall(old, new, isDir)
}

func (d disk) moveWithoutCall(old, new string, isDir bool) error {
	if isDir {
		if err := d.mkdir(new); err != nil {
			return err
		}
	} else {
		err := d.link(old, new)
		if err == nil {
			return d.remove(old)
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		f, err := d.create(new)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return errors.Join(err, d.remove(new))
		}
	}
	if err := d.renameOnto(old, new); err != nil {
		return errors.Join(err, d.remove(new)) // only the empty one created above
	}
	return nil
}
