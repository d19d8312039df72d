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

// translate wraps a system error in the matching error of package storage.
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

// identity is zero: a directory listing does not hold it, and reading it would
// open each file.
func identity(fs.FileInfo) (dev, ino uint64) { return 0, 0 }

const canMap = false

// mapFile reads the file, because a mapped file cannot be renamed.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if int64(int(size)) != size {
		return nil, nil, errors.ErrUnsupported
	}
	data := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, size), data)
	return data, func() error { return nil }, err
}

// syncDirectory does nothing: the file system journals its names.
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

// exchange is not supported: NTFS cannot exchange two names.
func exchange(a, b string) error { return errors.ErrUnsupported }

// hold does nothing: a handle that prevents deletion by others would also prevent
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

// renameOnto is not used: Windows has renameNoReplace.
func renameOnto(old, new string) error { return os.Rename(old, new) }
