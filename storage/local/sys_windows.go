package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/savepoint-tools/spt/storage"
)

// translate finds the error of package storage for one of the system.
func translate(err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err
	}
	switch errno {
	case windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL:
		return storage.ErrNoSpace
	case windows.ERROR_NETNAME_DELETED, windows.ERROR_BAD_NETPATH, windows.ERROR_SEM_TIMEOUT:
		return storage.ErrUnavailable
	}
	return err
}

// identity is not in what a directory says about its files; asking would open each.
func identity(fs.FileInfo) (dev, ino uint64) { return 0, 0 }

const canMap = false

// mapFile reads instead: a mapped file could not be renamed.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if int64(int(size)) != size {
		return nil, nil, errors.ErrUnsupported
	}
	data := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, size), data)
	return data, func() error { return nil }, err
}

// syncDirectory has nothing to do: the file system keeps a log of its names.
func syncDirectory(string) error { return nil }

func noLinks(err error) bool {
	return errors.Is(err, windows.ERROR_NOT_SAME_DEVICE) || errors.Is(err, windows.ERROR_INVALID_FUNCTION) ||
		errors.Is(err, windows.ERROR_NOT_SUPPORTED) || errors.Is(err, windows.ERROR_TOO_MANY_LINKS)
}

func renameNoReplace(old, new string) error {
	from, err := windows.UTF16PtrFromString(old)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(new)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(from, to, windows.MOVEFILE_WRITE_THROUGH)
}

// exchange is not there: NTFS cannot exchange two names.
func exchange(a, b string) error { return errors.ErrUnsupported }

// hold does nothing: a handle that keeps others from deleting would keep us from
// renaming.
func hold(*os.File) {}

func claim(*os.File) bool { return true }

func freeSpace(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}

// renameOnto is for systems without renameNoReplace.
func renameOnto(old, new string) error { return os.Rename(old, new) }
