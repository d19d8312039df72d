//go:build unix && !linux && !darwin

package local

import (
	"errors"
	"os"
)

func renameNoReplace(old, new string) error { return errors.ErrUnsupported }

func exchange(a, b string) error { return errors.ErrUnsupported }

func hold(*os.File) {}

func claim(*os.File) bool { return true }

func freeSpace(dir string) (uint64, error) { return 0, errors.ErrUnsupported }
