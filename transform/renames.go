package transform

import "github.com/savepoint-tools/spt/format"

// Renames are the operators of an older snapshot that a job, or a newer snapshot,
// likely has under other ids. A diff and a check find the same ones.
type Renames struct {
	// Likely are those for which one operator of the older snapshot fits, and no
	// other. With all of them renamed at once, no two operators have one id. Both
	// lists are sorted by label.
	Likely []LikelyRename
	// Open are those for which several fit, or one fits only in part.
	Open []LikelyRename
	// Names are the operators that kept their id and have another stored name.
	Names []NameChange
	// Skipped: too many operators came and went to compare each with each.
	Skipped bool
}

// LikelyRename is an operator of the newer snapshot, or of the job, and what the older
// snapshot may have of it.
type LikelyRename struct {
	ID  format.OperatorID
	UID string // "" if not known
	// Operator is nil where only the uid or id is known.
	Operator *format.Operator
	// From are operators of the older snapshot, one if it is likely.
	From []RenameSource
}

// RenameSource is an operator that may have been renamed.
type RenameSource struct {
	Operator *format.Operator
	Reasons  []string // names in them are quoted
	// Kept: the newer snapshot has its id too.
	Kept bool
}

// NameChange is an operator whose id is the same and whose stored name is not.
// The brackets after the name of an SQL operator do not count.
type NameChange struct {
	Old, New *format.Operator
}

// Label is the best name for people.
func (r *LikelyRename) Label() string {
	switch {
	case r.Operator != nil:
		return r.Operator.Label()
	case r.UID != "":
		return r.UID
	}
	return r.ID.Short()
}
