package finding

import (
	"cmp"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Severity is the severity of a finding.
type Severity string

// The severities. A snapshot with notes only is sound.
const (
	Error   Severity = "error"   // Flink refuses, cannot read the state, or state is lost
	Warning Severity = "warning" // it restores, but something will differ; or no release of Flink writes this
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

// Finding is one fact about a snapshot.
type Finding struct {
	Severity Severity
	Code     string // stable; see Catalogue
	// Operator is nil if the finding is about the whole snapshot, or about an
	// operator that only the job has (see UID).
	Operator *format.Operator
	UID      string
	State    string
	Place    string // path inside the snapshot; "" for the whole snapshot
	File     string // the reference, if the finding is about one
	Message  string
	Found    string   // location of a file that is not at its reference
	Advice   []Remedy // what to do; may be nil
	Parts    []Part   // of a type, if several differ
}

// Part is a part of a type that differs, with what that means.
type Part struct {
	Path    string // such as "items[].price"; "" for the whole type
	Verdict string // "incompatible"
	Why     string
}

// Sort sorts findings by severity, worst first. The sort is stable.
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

// NoTimers returns the finding about an operator whose keyed state, in tables of a
// native savepoint, has no timers.
func NoTimers(op *format.Operator) Finding {
	return Finding{Severity: Note, Code: "no-timers", Operator: op,
		Message: "its state has no timers. If the operator keeps timers on the heap, this native savepoint does not contain them: Flink does not write them",
		Advice:  Words("if the job sets state.backend.rocksdb.timer-service.factory: HEAP, take a canonical savepoint")}
}
