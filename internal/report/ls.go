package report

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/orphans"
)

// Listings is the answer of ls.
type Listings []Listing

// Listing is one snapshot, or what is left of one.
type Listing struct {
	Path         string     `json:"path"`
	State        string     `json:"state" jsonschema:"enum=complete,enum=incomplete,enum=unchecked,enum=damaged,enum=unreadable,enum=leftover,enum=displaced,description=displaced: whole but under a temporary name because a run that replaced it was interrupted; unchecked: what could be looked at is complete but nobody could look for some files; unreadable: its description may be whole but could not be read or is of a version that is not known"`
	Newest       bool       `json:"newest,omitempty" jsonschema:"description=the newest complete one under its root, or unchecked one none of whose files was looked for"`
	Problem      string     `json:"problem,omitempty"`
	Time         *time.Time `json:"time,omitempty"`
	Family       string     `json:"family,omitempty"`
	Type         string     `json:"type,omitempty"`
	Format       string     `json:"format,omitempty"`
	Changelog    bool       `json:"changelog,omitempty"`
	Unaligned    bool       `json:"unaligned,omitempty" jsonschema:"description=holds in-flight data"`
	Metadata     int        `json:"metadata_version,omitempty"`
	CheckpointID int64      `json:"checkpoint_id"`
	Operators    int        `json:"operator_count"`
	Bytes        int64      `json:"bytes" jsonschema:"description=description and state files as far as they are there; of a leftover all of it"`
	MissingFiles int        `json:"missing_files,omitempty"`
	NotChecked   int        `json:"not_checked_files,omitempty" jsonschema:"description=files that nobody looked for: they may be there"`
	OutsideFiles int        `json:"outside_files,omitempty" jsonschema:"description=files outside the snapshot and its checkpoint directory"`

	Sharing *Sharing `json:"sharing,omitempty" jsonschema:"description=with --shared"`

	Real   string `json:"-"` // its one name, with links resolved
	reason string // why it is in that state, without where in the snapshot
	plain  bool   // the reason is the same for all snapshots of its store
	age    string
}

// Sharing is which files of a snapshot others refer to as well.
type Sharing struct {
	Files  OrphanSum `json:"files" jsonschema:"description=all its files that were found, with the one that describes it"`
	Shared OrphanSum `json:"shared" jsonschema:"description=to which another snapshot refers too"`
	Freed  OrphanSum `json:"freed" jsonschema:"description=to which no other snapshot refers: removing this one frees them"`
	Others int       `json:"others" jsonschema:"description=snapshots that refer to the same files"`
	With   []string  `json:"with,omitempty" jsonschema:"description=the first 100 of them"`
}

// AddShares adds what each snapshot shares.
func (all Listings) AddShares(shares []orphans.Share) {
	byReal := map[string]*orphans.Share{}
	for i := range shares {
		byReal[shares[i].Real] = &shares[i]
	}
	for i := range all {
		if s := byReal[all[i].Real]; s != nil {
			all[i].Sharing = &Sharing{Files: OrphanSum(s.Total), Shared: OrphanSum(s.Shared), Freed: OrphanSum(s.Freed), Others: s.Others, With: s.With}
		}
	}
}

// shared reports whether any of them says what it shares.
func (all Listings) shared() bool {
	return slices.ContainsFunc(all, func(l Listing) bool { return l.Sharing != nil })
}

// NewListing reports what was found, as it is at a time.
func (r *Run) NewListing(e reader.Entry, now time.Time) Listing {
	l := Listing{
		Path: e.Path, State: string(e.State), Newest: e.Newest, Problem: r.Hide(e.Problem),
		Family: string(e.Container.Family), Type: e.Kind.Type, Format: e.Kind.Format, Changelog: e.Kind.Changelog, Unaligned: e.Kind.Unaligned, Metadata: int(e.Container.Metadata),
		CheckpointID: e.ID, Operators: e.Operators, Bytes: e.Bytes, MissingFiles: e.Missing, NotChecked: e.NotChecked, OutsideFiles: e.Outside,
		reason: r.Hide(cmp.Or(e.Reason, e.Problem)), plain: e.NotLooked,
	}
	if !e.Time.IsZero() {
		l.Time, l.age = new(e.Time.UTC()), ui.Ago(e.Time, now)
	}
	return l
}

// Lines implements [Lines].
func (all Listings) Lines() iter.Seq[any] { return each(all) }

// Header implements [Rows].
func (all Listings) Header() []string {
	header := []string{"path", "state", "newest", "time", "family", "type", "format", "metadata_version", "checkpoint_id", "operator_count", "bytes", "missing_files", "problem", "not_checked_files", "outside_files"}
	if all.shared() {
		header = append(header, "shared_bytes", "freed_bytes", "shared_with")
	}
	return header
}

// Rows implements [Rows].
func (all Listings) Rows() iter.Seq[[]string] {
	shared := all.shared()
	return rows(all, func(l *Listing) []string {
		row := []string{l.Path, l.State, strconv.FormatBool(l.Newest), timeText(l.Time), l.Family, l.Type, l.Format, strconv.Itoa(l.Metadata),
			strconv.FormatInt(l.CheckpointID, 10), strconv.Itoa(l.Operators), strconv.FormatInt(l.Bytes, 10), strconv.Itoa(l.MissingFiles), l.Problem, strconv.Itoa(l.NotChecked), strconv.Itoa(l.OutsideFiles)}
		switch s := l.Sharing; {
		case s != nil:
			row = append(row, strconv.FormatInt(s.Shared.Bytes, 10), strconv.FormatInt(s.Freed.Bytes, 10), strconv.Itoa(s.Others))
		case shared:
			row = append(row, "", "", "")
		}
		return row
	})
}

// timeText returns a time for a cell; "" if it is not known.
func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// Document implements [Report].
func (all Listings) Document() *ui.Document {
	if all.shared() {
		return all.sharing()
	}
	t := ui.NewTable(
		ui.Column{Header: "SNAPSHOT", Shrink: 1, Cut: ui.CutMiddle, Min: 20},
		ui.Column{Header: "KIND", Shrink: 3, Min: 10, Drop: 2},
		ui.Column{Header: "ID", Align: ui.Right, Drop: 1},
		ui.Column{Header: "TIME", Align: ui.Right, Drop: 3},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "STATE", Shrink: 2, Min: len("complete, newest"), Wrap: true},
	)
	for i := range all {
		l := &all[i]
		kind := qualified(l.Type, l.Format, l.Changelog, l.Unaligned)
		if l.Family == string(reader.SPT) {
			kind = strings.TrimSuffix("spt, "+kind, ", snapshot")
		}
		id, size := "", ""
		if l.Family != "" {
			id, size = ui.Count(l.CheckpointID), ui.Bytes(l.Bytes)
		} else if l.State == string(reader.Leftover) && l.Bytes > 0 {
			size = ui.Bytes(l.Bytes)
		}
		t.Row(ui.Quote(l.Path), kind, id, l.age, size, l.stateText())
	}
	var d ui.Document
	d.Add(t)
	return &d
}

// sharing is the answer of --shared.
func (all Listings) sharing() *ui.Document {
	t := ui.NewTable(
		ui.Column{Header: "SNAPSHOT", Shrink: 1, Cut: ui.CutMiddle, Min: 20},
		ui.Column{Header: "TIME", Align: ui.Right, Drop: 1},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "SHARED", Align: ui.Right},
		ui.Column{Header: "FREED", Align: ui.Right},
		ui.Column{Header: "SHARED WITH", Shrink: 2, Min: 15, Wrap: true},
	)
	for i := range all {
		l := &all[i]
		s := l.Sharing
		if s == nil {
			t.Row(ui.Quote(l.Path), l.age, "", "", "", l.stateText())
			continue
		}
		with := "–"
		if n := s.Others; n > 0 {
			with = ui.Quote(s.With[0])
			if n > 1 {
				with += fmt.Sprintf(" and %s more", ui.Count(int64(n-1)))
			}
		}
		t.Row(ui.Quote(l.Path), l.age, ui.Bytes(s.Files.Bytes), ui.Bytes(s.Shared.Bytes), ui.Bytes(s.Freed.Bytes), with)
	}
	var d ui.Document
	d.Add(t)
	return &d
}

func (l *Listing) stateText() string {
	text := l.State + ": " + ui.Printable(l.reason)
	switch reader.EntryState(l.State) {
	case reader.Unchecked:
		if l.plain { // a remark says what that means
			text = l.State
			if l.Newest {
				text += ", newest"
			}
		}
	case reader.Complete:
		text = l.State
		if l.Newest {
			text = ui.Proved("complete, newest")
		}
		if l.OutsideFiles > 0 {
			text += ", " + ui.Look(ui.Plural(int64(l.OutsideFiles), "file")+" outside the snapshot")
		}
		return text
	case reader.Damaged, reader.Unreadable:
		return ui.Bad(text)
	}
	return ui.Look(text)
}

// Leftovers says how to remove what interrupted runs left under roots; "" if there is
// nothing.
func (all Listings) Leftovers(roots []string) string {
	var n, bytes int64
	for i := range all {
		if all[i].State == string(reader.Leftover) {
			n++
			bytes += all[i].Bytes
		}
	}
	if n == 0 {
		return ""
	}
	command := "spt clean"
	for _, root := range roots {
		command += " " + shell.Quote(root)
	}
	return fmt.Sprintf("%s of interrupted runs, %s; to remove those older than a day:  %s", ui.Plural(n, "leftover"), ui.Bytes(bytes), command)
}
