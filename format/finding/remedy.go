package finding

import (
	"errors"
	"slices"
	"strings"
)

// Remedy is one way to deal with a finding or an error. It names no command or
// flag; a program maps Action to its own.
type Remedy struct {
	// Words says what to do, and under which condition.
	Words string
	// Also: in addition to the preceding remedy, not instead of it.
	Also bool

	// Action is how spt does it; [NoAction] if it does not. The fields below are
	// the arguments of the action, empty if not needed or unknown.
	Action    Action
	Operator  string // label of an operator of the snapshot
	State     string
	To        string   // the new value
	Locations []string // see the Action constants
}

// String returns the words, and in brackets the action with its arguments.
func (m Remedy) String() string {
	if m.Action == NoAction {
		return m.Words
	}
	args := append([]string{string(m.Action), m.Operator, m.State, m.To}, m.Locations...)
	args = slices.DeleteFunc(args, func(s string) bool { return s == "" })
	return m.Words + " (" + strings.Join(args, " ") + ")"
}

// Action is an operation of spt.
type Action string

// The actions on the snapshot that a finding or an error is about.
const (
	NoAction          Action = ""
	Verify            Action = "verify"              // find out what else is damaged
	Salvage           Action = "salvage"             // show what precedes the damage
	ShowElements      Action = "show-elements"       // print the elements of states
	CountElements     Action = "count-elements"      // print how often each element of State occurs
	FindDuplicates    Action = "find-duplicates"     // find duplicates in union state
	KeepOneOfEach     Action = "keep-one-of-each"    // remove the duplicates of State
	KeepUnproven      Action = "keep-unproven"       // the same, although not proven to be made by restores
	RenameOperator    Action = "rename-operator"     // change the uid of Operator
	RenameState       Action = "rename-state"        // rename State of Operator to To
	DropOperator      Action = "drop-operator"       // remove the state of Operator
	DropInFlight      Action = "drop-in-flight"      // remove in-flight data
	SetMaxParallelism Action = "set-max-parallelism" // set the max parallelism of Operator to To
	Regroup           Action = "regroup"             // move keys to the key groups of another max parallelism To
	SetMode           Action = "set-mode"            // change the mode of State of Operator to To, such as list
	Copy              Action = "copy"                // write a copy that needs no other files
	RescaleOther      Action = "rescale-other"       // rescale the other snapshot of a merge to To
	WriteMapping      Action = "write-mapping"       // rewrite references to files that were moved away from Locations[0]
)

// The actions with another location.
const (
	Open Action = "open" // run the same operation with Locations[0]
	List Action = "list" // list the snapshots in Locations[0]
)

// The actions that repeat the operation with more permissions or information.
const (
	ReadOutside   Action = "read-outside"   // allow reading below Locations
	MapFiles      Action = "map-files"      // map references to files that were moved away from Locations[0]
	SearchPath    Action = "search-path"    // set directories in which bare names are searched
	NameUIDs      Action = "name-uids"      // list the uids of the job
	NameRelease   Action = "name-release"   // name the release of Flink
	KeepMissing   Action = "keep-missing"   // keep references to files that are missing
	LeaveOperator Action = "leave-operator" // leave operators unchanged whose keyed state cannot be written
	// BuildCanonical builds keyed state again in the canonical format.
	BuildCanonical Action = "build-canonical"
	Overwrite      Action = "overwrite" // replace the snapshot at the target
)

// Words returns a remedy without an action.
func Words(text string) []Remedy { return []Remedy{{Words: text}} }

// RemediesOf returns the remedies of err or of an error that it wraps.
func RemediesOf(err error) []Remedy {
	var e interface{ Remedies() []Remedy }
	if errors.As(err, &e) {
		return e.Remedies()
	}
	return nil
}
