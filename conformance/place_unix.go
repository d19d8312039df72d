//go:build unix

package conformance

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

// exclusive locks a file until the process ends, and calls waiting if it has to
// wait for another process.
func exclusive(f *os.File, waiting func()) error {
	descriptor := int(f.Fd())
	if err := unix.Flock(descriptor, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	waiting()
	return unix.Flock(descriptor, unix.LOCK_EX)
}
