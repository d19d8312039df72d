package reader

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// OutsideError is a reference that leads out of the folders whose files are
// read: see Options.Follow. It matches format.ErrOutside.
type OutsideError struct {
	Reference string // as the snapshot has it
	Leads     string // where it leads, links resolved; "" where that was not looked at
	Follow    string // the folder that Options.Follow must name to allow it
}

func (e *OutsideError) Error() string {
	text := fmt.Sprintf("file %s is outside the snapshot and its checkpoint directory and is not read", quote(e.Reference))
	if e.Leads != "" && e.Leads != e.Reference {
		text += fmt.Sprintf(" (it leads to %s)", quote(e.Leads))
	}
	return text
}

// Is makes it a format.ErrOutside.
func (e *OutsideError) Is(target error) bool { return target == format.ErrOutside }

// NotCheckedError is a reference whose file nobody could look for: its store is
// not supported here, gave no answer or no permission. It matches
// format.ErrNotChecked and Err.
type NotCheckedError struct {
	Reference string // as the snapshot has it, or as a mapping changed it
	Scheme    string // of a store that is not supported here, else ""
	Err       error  // of the store
}

func (e *NotCheckedError) Error() string {
	if e.Scheme != "" {
		return fmt.Sprintf("file %s was not checked: %s: is not supported here", quote(e.Reference), e.Scheme)
	}
	return fmt.Sprintf("file %s was not checked: %v", quote(e.Reference), e.Err)
}

// Unwrap makes it a format.ErrNotChecked and what the store said.
func (e *NotCheckedError) Unwrap() []error { return []error{format.ErrNotChecked, e.Err} }
