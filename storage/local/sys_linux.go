package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func renameNoReplace(old, new string) error {
	return rename(old, new, unix.RENAME_NOREPLACE)
}

func exchange(a, b string) error { return rename(a, b, unix.RENAME_EXCHANGE) }

func rename(old, new string, flags uint) error {
	err := unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, new, flags)
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP { // this file system, this kernel
		return errors.ErrUnsupported
	}
	return err
}

// startFlush asks the kernel to write a range to the disk, without waiting. It
// only saves time: Commit syncs, and reports errors.
func startFlush(f *os.File, off, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
}
