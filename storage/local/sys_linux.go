package local

import (
	"errors"

	"golang.org/x/sys/unix"
)

func renameNoReplace(old, new string) error {
	err := unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, new, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS { // this file system, this kernel
		return errors.ErrUnsupported
	}
	return err
}
