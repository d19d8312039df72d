package local

import (
	"errors"

	"golang.org/x/sys/unix"
)

func renameNoReplace(old, new string) error {
	err := unix.RenamexNp(old, new, unix.RENAME_EXCL)
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP {
		return errors.ErrUnsupported
	}
	return err
}

func exchange(a, b string) error {
	err := unix.RenamexNp(a, b, unix.RENAME_SWAP)
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP {
		return errors.ErrUnsupported
	}
	return err
}
