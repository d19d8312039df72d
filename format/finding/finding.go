package finding

import (
	"cmp"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Severity is how bad a finding is.
type Severity string

// The severities. Notes are worth knowing and no fault: a snapshot with notes
// only is sound.
const (
	Error   Severity = "error"   // Flink refuses, cannot read the state, or state is lost
	Warning Severity = "warning" // it restores, and something will differ; or no release of Flink writes this
	Note    Severity = "note"    // worth knowing
)

// rank orders severities, worst first.
func (s Severity) rank() int {
	switch s {
	case Error:
		return 0
	case Warning:
		return 1
	}
	return 2
}

// Finding is one thing that was found out about a snapshot.
type Finding struct {
	Severity Severity
	Code     string // stable; see Catalogue
	// Operator concerned; nil: the snapshot as a whole, or an operator of the
	// job that the snapshot does not have, see UID.
	Operator *format.Operator
	UID      string
	State    string
	Place    string // path inside the snapshot, "" for the whole
	File     string // reference concerned, if any
	Message  string
	Found    string   // where a file was found that is not at its reference
	Advice   []Remedy // what to do, or nil
}

// Sort puts the worst findings first and keeps the order of equal ones.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

// Count returns the number of findings of a severity.
func Count(all []Finding, s Severity) int {
	n := 0
	for _, f := range all {
		if f.Severity == s {
			n++
		}
	}
	return n
}
