//go:build !unix && !windows

package conformance

import "os"

// exclusive does not lock: run one process at a time.
func exclusive(*os.File) error { return nil }
