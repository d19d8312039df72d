//go:build !unix

package conformance

import "os"

// writable is false: the neutral folder is a path of unix systems.
func writable(string) bool { return false }

// exclusive locks nothing here: run one process at a time.
func exclusive(*os.File, func()) error { return nil }
