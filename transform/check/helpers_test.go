package check

import (
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// st is one state of a made handle.
type st struct {
	name  string
	mode  format.Mode
	elems []string
}

func nativeHandle(name string, states ...st) *format.OperatorHandle {
	var all []sptest.State
	for _, s := range states {
		all = append(all, sptest.State{Name: s.name, Mode: s.mode, Elements: s.elems})
	}
	return sptest.NativeHandle(name, all...)
}

func chars(s string) (all []string) {
	for _, r := range s {
		all = append(all, string(r))
	}
	return all
}
