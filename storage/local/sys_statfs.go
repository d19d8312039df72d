//go:build linux || darwin

package local

import (
	"os"

	"golang.org/x/sys/unix"
)

func freeSpace(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil //nolint:unconvert // not on every system
}

// hold marks an open file or directory as in use until it is closed. It does
// nothing if the file system has no locks.
func hold(f *os.File) { _ = unix.Flock(int(f.Fd()), unix.LOCK_SH) }

// claim marks it for removal until it is closed. It returns false if it is in
// use.
func claim(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != unix.EWOULDBLOCK
}
