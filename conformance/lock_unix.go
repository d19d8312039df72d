//go:build unix

package conformance

import (
	"os"

	"golang.org/x/sys/unix"
)

// exclusive locks a file until it is closed.
func exclusive(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }
