//go:build unix && !linux && !darwin

package local

import "errors"

func renameNoReplace(old, new string) error { return errors.ErrUnsupported }

func freeSpace(dir string) (uint64, error) { return 0, errors.ErrUnsupported }
