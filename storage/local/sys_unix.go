//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/savepoint-tools/spt/storage"
)

// translate wraps a system error in the matching error of package storage.
func translate(err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err
	}
	var kind error
	switch errno {
	case unix.ENOSPC:
		return storage.ErrNoSpace
	case unix.EDQUOT:
		kind = storage.ErrNoSpace
	case unix.ENOTDIR:
		kind = storage.ErrNotExist // "file/x"
	case unix.EISDIR:
		kind = storage.ErrExist
	case unix.ESTALE:
		kind = storage.ErrChanged // deleted or replaced on the server
	case unix.ETIMEDOUT, unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENETUNREACH:
		kind = storage.ErrUnavailable
	default:
		return err
	}
	return fmt.Errorf("%w: %w", kind, errno)
}

func identity(fi fs.FileInfo) (dev, ino uint64) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino) //nolint:unconvert // not on every system
	}
	return 0, 0
}

const canMap = true

// mapFile returns the first size bytes of a file, read-only.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	if size == 0 { // mmap refuses an empty range
		return nil, func() error { return nil }, nil
	}
	if int64(int(size)) != size {
		return nil, nil, errors.ErrUnsupported
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

// syncDirectory makes the names in a directory durable. Some file systems do not
// support it and do not need it.
func syncDirectory(dir string) error {
	if dir == "" {
		dir = "."
	}
	f, err := os.Open(dir)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil // writable but not readable
		}
		return err
	}
	err = f.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// noLinks reports whether an error means that hard links are not possible here.
func noLinks(err error) bool {
	for _, errno := range []syscall.Errno{unix.EXDEV, unix.EPERM, unix.EMLINK, unix.ENOSYS, unix.ENOTSUP, unix.EOPNOTSUPP} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// renameOnto renames, also onto an empty directory, unlike os.Rename.
func renameOnto(old, new string) error { return unix.Rename(old, new) }
