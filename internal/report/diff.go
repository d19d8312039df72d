package report

import (
	"iter"
)

// Diff is the answer of diff.
type Diff struct {
	Old           DiffSnapshot   `json:"old"`
	New           DiffSnapshot   `json:"new"`
	Same          bool           `json:"same" jsonschema:"description=nothing that was compared differs, but for the checkpoint id"`
	Differ        []string       `json:"differ" jsonschema:"description=the kinds of differences"`
	Ignored       []string       `json:"ignored,omitempty"`
	Counts        DiffCounts     `json:"counts"`
	Operators     []DiffOperator `json:"operators" jsonschema:"description=of both snapshots, by how much they grew"`
	Differences   []DiffLine     `json:"differences"`
	Absent        int64          `json:"files_missing_on_both,omitempty" jsonschema:"description=files that both name alike and neither has: their content was not compared"`
	NotChecked    int64          `json:"files_not_checked_on_both,omitempty" jsonschema:"description=files that both name alike and that could not be looked for, such as those in a store that is not supported"`
	ByDigest      int64          `json:"bytes_by_checksum,omitempty" jsonschema:"description=of two .spt files: bytes that are the same by the checksums of their chunks, and were not read"`
	KeyedByBytes  bool           `json:"keyed_by_bytes,omitempty" jsonschema:"description=keyed state was compared by bytes only: its entries could not be compared, or did not need to be"`
	Renames       []Rename       `json:"renames,omitempty" jsonschema:"description=operators that the older snapshot likely has, or may have, under another id"`
	NameChanges   []NameChange   `json:"name_changes,omitempty" jsonschema:"description=operators of one id whose stored name changed: the id may be that of another operator now"`
	RenameCommand string         `json:"rename_command,omitempty" jsonschema:"description=renames all that are likely in the older snapshot; absent where a uid is not known"`

	suggested *renames
}

// DiffSnapshot is one of the two.
type DiffSnapshot struct {
	Path         string `json:"path"`
	Family       string `json:"family" jsonschema:"enum=flink,enum=spt"`
	Type         string `json:"type" jsonschema:"enum=savepoint,enum=checkpoint,enum=snapshot"`
	Format       string `json:"format,omitempty"`
	CheckpointID int64  `json:"checkpoint_id"`
	Operators    int    `json:"operator_count"`
	Bytes        int64  `json:"bytes" jsonschema:"description=of state"`
}

// DiffCounts is how many operators are what.
type DiffCounts struct {
	Same    int `json:"same"`
	Changed int `json:"changed"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Renamed int `json:"renamed" jsonschema:"description=likely so: gone under one id and there under another"`
}

// DiffOperator is one operator of either snapshot.
type DiffOperator struct {
	UID               string      `json:"uid,omitempty"`
	Name              string      `json:"name,omitempty"`
	ID                string      `json:"id"`
	Change            string      `json:"change" jsonschema:"enum=same,enum=changed,enum=added,enum=removed,enum=renamed"`
	OldID             string      `json:"old_id,omitempty" jsonschema:"description=of what is likely renamed"`
	Reasons           []string    `json:"reasons,omitempty" jsonschema:"description=to think that it was renamed"`
	RenameCommand     string      `json:"rename_command,omitempty" jsonschema:"description=renames it in the old snapshot"`
	OldParallelism    int32       `json:"old_parallelism"`
	NewParallelism    int32       `json:"new_parallelism"`
	OldMaxParallelism int32       `json:"old_max_parallelism"`
	NewMaxParallelism int32       `json:"new_max_parallelism"`
	OldBytes          int64       `json:"old_bytes"`
	NewBytes          int64       `json:"new_bytes"`
	Difference        int64       `json:"difference_bytes"`
	States            []DiffState `json:"states"`

	label string
	texts []string // what differs, of the operator as a whole
}

// DiffState is one state of an operator in either snapshot.
type DiffState struct {
	Name         string        `json:"name,omitempty"`
	OldKind      string        `json:"old_kind,omitempty" jsonschema:"description=list, union, broadcast, raw, keyed, raw keyed, in-flight data, coordinator, legacy; absent where the state does not exist"`
	NewKind      string        `json:"new_kind,omitempty"`
	OldBytes     int64         `json:"old_bytes"`
	NewBytes     int64         `json:"new_bytes"`
	Difference   int64         `json:"difference_bytes"`
	OldElements  *int64        `json:"old_elements,omitempty"`
	NewElements  *int64        `json:"new_elements,omitempty"`
	OldDistinct  *int64        `json:"old_distinct,omitempty" jsonschema:"description=absent where it was not necessary to count them"`
	NewDistinct  *int64        `json:"new_distinct,omitempty"`
	Added        *int64        `json:"added,omitempty" jsonschema:"description=elements; of broadcast state whole maps"`
	Removed      *int64        `json:"removed,omitempty"`
	Moved        *int64        `json:"moved,omitempty" jsonschema:"description=with --placement: elements that are in other subtasks"`
	MultipliedBy int64         `json:"multiplied_by,omitempty" jsonschema:"description=every element occurs this many times as often as before, and none is new"`
	DividedBy    int64         `json:"divided_by,omitempty"`
	KeysAdded    *int64        `json:"keys_added,omitempty" jsonschema:"description=of broadcast state that was compared by key"`
	KeysRemoved  *int64        `json:"keys_removed,omitempty"`
	KeysChanged  *int64        `json:"keys_changed,omitempty"`
	MapsAdded    *int64        `json:"maps_added,omitempty" jsonschema:"description=of broadcast state: maps, by their entries, that a replica holds in the new snapshot only"`
	MapsRemoved  *int64        `json:"maps_removed,omitempty"`
	Keyed        *DiffKeyed    `json:"keyed,omitempty"`
	Elements     []DiffElement `json:"elements,omitempty" jsonschema:"description=with -v: the first that differ"`

	texts []string
}

// DiffKeyed is keyed state, compared by bytes, and by entries where these differ.
type DiffKeyed struct {
	Entries       []DiffKeyedState `json:"entries,omitempty" jsonschema:"description=the states, if entries were compared"`
	NotCompared   string           `json:"entries_not_compared,omitempty" jsonschema:"description=why entries were not compared although the bytes differ"`
	Incomparable  string           `json:"incomparable,omitempty" jsonschema:"description=why bytes were not compared"`
	GroupsSame    int64            `json:"groups_same"`
	GroupsChanged int64            `json:"groups_changed"`
	GroupsAdded   int64            `json:"groups_added"`
	GroupsRemoved int64            `json:"groups_removed"`
	FilesSame     int64            `json:"files_same"`
	ByReference   int64            `json:"files_same_by_reference" jsonschema:"description=of files_same: named by the same absolute reference that leads both to one file, or of equal checksums in two .spt files, and not read"`
	FilesAdded    int64            `json:"files_added"`
	FilesRemoved  int64            `json:"files_removed"`
	BytesAdded    int64            `json:"bytes_added" jsonschema:"description=in files added"`
	BytesRemoved  int64            `json:"bytes_removed"`
	Groups        []int32          `json:"groups,omitempty" jsonschema:"description=with -v: the key groups that differ"`
}

// DiffKeyedState is the entries of one keyed state, by key, namespace and map key, of
// timers by their time too, and by key group if the max parallelisms are equal.
type DiffKeyedState struct {
	Name    string      `json:"name"`
	Kind    string      `json:"kind"`
	Added   int64       `json:"added"`
	Removed int64       `json:"removed"`
	Changed int64       `json:"changed"`
	Changes []DiffEntry `json:"changes,omitempty" jsonschema:"description=with -v: the first that are removed, changed and added"`
}

// DiffEntry is an entry of keyed state that differs.
type DiffEntry struct {
	Change string `json:"change" jsonschema:"enum=added,enum=removed,enum=changed"`
	Before any    `json:"before,omitempty" jsonschema:"description=the entry in the old snapshot, with the members that cat prints: subtask, key_group, size, key, …"`
	After  any    `json:"after,omitempty"`

	shown string // for people
}

// DiffElement is an element, or an entry of a broadcast state, that differs.
type DiffElement struct {
	Change   string   `json:"change" jsonschema:"enum=added,enum=removed,enum=changed"`
	OldCount int64    `json:"old_count" jsonschema:"description=how often it occurs; of an entry: how many values its key has"`
	NewCount int64    `json:"new_count"`
	Subtask  *int32   `json:"subtask,omitempty" jsonschema:"description=where it occurs first, in the new snapshot if it is added, else in the old"`
	Index    *int64   `json:"index,omitempty"`
	Value    any      `json:"value,omitempty" jsonschema:"description=its value as cat prints it, where its type is decoded"`
	Base64   string   `json:"value_base64,omitempty" jsonschema:"description=the element as stored"`
	Hex      string   `json:"value_hex,omitempty"`
	Text     string   `json:"value_text,omitempty"`
	Redacted string   `json:"value_redacted,omitempty"`
	Key      any      `json:"key,omitempty" jsonschema:"description=of an entry"`
	Old      []string `json:"old_values,omitempty" jsonschema:"description=of an entry, each as JSON; with --format redacted length and hash of that"`
	New      []string `json:"new_values,omitempty"`

	shown string // for people
}

// DiffLine is one difference: a line of -o jsonl. There, with -v, each element and each
// entry of keyed state that differs is a line of its own.
type DiffLine struct {
	Kind     string       `json:"kind"`
	Operator string       `json:"operator,omitempty" jsonschema:"description=uid, else name, else the first digits of the id; absent for the snapshot as a whole"`
	ID       string       `json:"id,omitempty"`
	State    string       `json:"state,omitempty"`
	Text     string       `json:"text,omitempty" jsonschema:"description=the difference in words"`
	Element  *DiffElement `json:"element,omitempty"`
	// Of an entry of keyed state.
	Change string `json:"change,omitempty" jsonschema:"enum=added,enum=removed,enum=changed"`
	Before any    `json:"before,omitempty" jsonschema:"description=the entry in the old snapshot, with the members that cat prints: subtask, key_group, size, key, …"`
	After  any    `json:"after,omitempty"`
}

// Lines implements [Lines]: differences, and the elements that differ.
func (r *Diff) Lines() iter.Seq[any] {
	return func(yield func(any) bool) {
		for line := range r.lines() {
			if !yield(line) {
				return
			}
		}
	}
}

func (r *Diff) lines() iter.Seq[*DiffLine] {
	return func(yield func(*DiffLine) bool) {
		for i := range r.Differences {
			if !yield(&r.Differences[i]) {
				return
			}
		}
		for i := range r.Operators {
			op := &r.Operators[i]
			for k := range op.States {
				st := &op.States[k]
				for n := range st.Elements {
					if !yield(&DiffLine{Kind: "element", Operator: op.label, ID: op.ID, State: st.Name, Element: &st.Elements[n]}) {
						return
					}
				}
				for s, e := range st.entries() {
					if !yield(&DiffLine{Kind: "entry", Operator: op.label, ID: op.ID, State: s.Name, Change: e.Change, Before: e.Before, After: e.After}) {
						return
					}
				}
			}
		}
	}
}

// entries returns the listed entries of keyed state.
func (st *DiffState) entries() iter.Seq2[*DiffKeyedState, *DiffEntry] {
	return func(yield func(*DiffKeyedState, *DiffEntry) bool) {
		if st.Keyed == nil {
			return
		}
		for i := range st.Keyed.Entries {
			s := &st.Keyed.Entries[i]
			for k := range s.Changes {
				if !yield(s, &s.Changes[k]) {
					return
				}
			}
		}
	}
}
