package transform

import "github.com/savepoint-tools/spt/format"

// Renames are the operators of an older snapshot that a job, or a newer snapshot,
// likely has under other ids. Packages diff and check use it.
type Renames struct {
	// Likely are the operators that match exactly one operator of the older snapshot.
	// After all of these renames, no two operators have one id. Both lists are sorted
	// by label.
	Likely []LikelyRename
	// Open are the operators that match several, or one only in part.
	Open []LikelyRename
	// Names are the operators with the same id and another stored name.
	Names []NameChange
	// Skipped is set if too many operators were added and removed to compare all
	// pairs.
	Skipped bool
}

// LikelyRename is an operator of the newer snapshot, or of the job, with the
// operators of the older snapshot that it may have been.
type LikelyRename struct {
	ID  format.OperatorID
	UID string // "" if unknown
	// Operator is nil if only the uid or id is known.
	Operator *format.Operator
	// From are operators of the older snapshot; exactly one for a likely rename.
	From []RenameSource
}

// RenameSource is an operator that may have been renamed.
type RenameSource struct {
	Operator *format.Operator
	Reasons  []string // names in them are quoted
	// Kept is set if the newer snapshot has its id too.
	Kept bool
}

// NameChange is an operator with the same id and another stored name. Brackets
// after the name of an SQL operator are ignored.
type NameChange struct {
	Old, New *format.Operator
}

// Label returns the display name.
func (r *LikelyRename) Label() string {
	switch {
	case r.Operator != nil:
		return r.Operator.Label()
	case r.UID != "":
		return r.UID
	}
	return r.ID.Short()
}
