package conformance

import (
	"os"

	"golang.org/x/sys/windows"
)

// exclusive locks a file until it is closed.
func exclusive(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
}
