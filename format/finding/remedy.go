package finding

import (
	"errors"
	"slices"
	"strings"
)

// Remedy is one thing that can be done about a finding or an error. It names no
// command and no flag: a program says how its users do it.
type Remedy struct {
	// Words say what to do, and on which condition.
	Words string
	// Also: this is to be done as well as what precedes it, not instead.
	Also bool

	// Action is how spt does it. Where it is [NoAction], the words say it all. The
	// fields after it are what the action is done with; those that are not needed
	// or not known are empty.
	Action    Action
	Operator  string // label of an operator of the snapshot
	State     string
	To        string   // the new value
	Locations []string // see the actions
}

// String returns the words, and the action with what it is done with in brackets.
func (m Remedy) String() string {
	if m.Action == NoAction {
		return m.Words
	}
	args := append([]string{string(m.Action), m.Operator, m.State, m.To}, m.Locations...)
	args = slices.DeleteFunc(args, func(s string) bool { return s == "" })
	return m.Words + " (" + strings.Join(args, " ") + ")"
}

// Action is something that spt can do.
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
	KeepUnproven      Action = "keep-unproven"       // the same, though it is not proven that restores made them
	RenameOperator    Action = "rename-operator"     // give the state of Operator another uid
	RenameState       Action = "rename-state"        // name State of Operator To
	DropOperator      Action = "drop-operator"       // remove the state of Operator
	DropInFlight      Action = "drop-in-flight"      // remove in-flight data
	SetMaxParallelism Action = "set-max-parallelism" // set the max parallelism of Operator to To
	SetMode           Action = "set-mode"            // make State of Operator a To state, such as list
	Copy              Action = "copy"                // write a copy that needs no other files
	RescaleOther      Action = "rescale-other"       // rescale the other snapshot of a merge to To
	WriteMapping      Action = "write-mapping"       // write down where files are now that are not below Locations[0]
)

// The actions that start with another location.
const (
	Open Action = "open" // do what was tried with Locations[0]
	List Action = "list" // list the snapshots in Locations[0]
)

// The actions that repeat what was tried, and allow it or say more.
const (
	ReadOutside   Action = "read-outside"   // allow reading below Locations
	MapFiles      Action = "map-files"      // say where files are now that are not below Locations[0]
	SearchPath    Action = "search-path"    // name folders in which bare names are looked for
	NameUIDs      Action = "name-uids"      // say which uids the job has
	NameRelease   Action = "name-release"   // say which release of Flink is meant
	KeepMissing   Action = "keep-missing"   // keep references to files that are missing
	LeaveOperator Action = "leave-operator" // leave operators as they are whose keyed state cannot be written
	Overwrite     Action = "overwrite"      // replace the snapshot at the target
)

// Words returns a remedy that no action does.
func Words(text string) []Remedy { return []Remedy{{Words: text}} }

// RemediesOf returns what can be done about an error, as far as the error or one that it
// wraps says so.
func RemediesOf(err error) []Remedy {
	var e interface{ Remedies() []Remedy }
	if errors.As(err, &e) {
		return e.Remedies()
	}
	return nil
}
