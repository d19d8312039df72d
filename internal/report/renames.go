package report

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// Rename is an operator of the newer snapshot, or of the job, that the older snapshot
// may have under another id.
type Rename struct {
	Operator string       `json:"operator"`
	ID       string       `json:"id" jsonschema:"description=new"`
	Likely   bool         `json:"likely" jsonschema:"description=exactly one operator fits"`
	From     []RenameFrom `json:"from" jsonschema:"description=operators of the older snapshot that fit"`

	shown bool // its reasons are shown elsewhere
}

// RenameFrom is an operator that may have been renamed.
type RenameFrom struct {
	Operator string   `json:"operator"`
	ID       string   `json:"id"`
	Reasons  []string `json:"reasons"`
	Kept     bool     `json:"kept,omitempty" jsonschema:"description=the newer snapshot has its id too"`
}

// NameChange is an operator whose id stayed and whose stored name changed.
type NameChange struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	Old      string `json:"old_name"`
	New      string `json:"new_name"`
}

// Renames are the suggestions of diff and of check.
type Renames struct {
	List    []Rename
	Names   []NameChange
	Command string // renames all that are likely; "" where a uid is not known

	skipped bool
}

// NewRenames returns the suggestions for the snapshot at path.
func (r *Run) NewRenames(found *transform.Renames, path string) *Renames {
	s := &Renames{}
	if found == nil {
		return s
	}
	s.skipped = found.Skipped
	var flags strings.Builder
	known := r.Format != ui.FormatRedacted
	for k, list := range [][]transform.LikelyRename{found.Likely, found.Open} {
		likely := k == 0
		for i := range list {
			row, uid := r.newRename(&list[i], likely)
			s.List = append(s.List, row)
			if likely {
				known = known && uid != ""
				fmt.Fprintf(&flags, " --uid %s=%s", row.From[0].ID, shell.Quote(uid))
			}
		}
	}
	for _, n := range found.Names {
		s.Names = append(s.Names, NameChange{r.Label(n.New), n.New.ID.String(), r.Text(n.Old.Name.String()), r.Text(n.New.Name.String())})
	}
	if known && flags.Len() > 0 {
		s.Command = fmt.Sprintf("spt rename %s OUT%s", shell.Quote(path), flags.String())
	}
	return s
}

// newRename returns a suggestion, and the new uid or "".
func (r *Run) newRename(n *transform.LikelyRename, likely bool) (row Rename, uid string) {
	row = Rename{Operator: r.Text(n.Label()), ID: n.ID.String(), Likely: likely, From: []RenameFrom{}}
	if n.Operator != nil {
		row.Operator = r.Label(n.Operator)
	}
	for _, f := range n.From {
		row.From = append(row.From, RenameFrom{r.Label(f.Operator), f.Operator.ID.String(), r.reasons(f.Reasons), f.Kept})
	}
	if uid = n.UID; uid == "" {
		uid = r.Learned(row.ID)
	}
	if uid != "" && format.OperatorIDOf(uid).String() != row.ID {
		uid = "" // the job sets the id itself, which no uid gives
	}
	return row, uid
}

// reasons returns the reasons for a likely renaming, which may quote names.
func (r *Run) reasons(all []string) []string {
	if r.Format == ui.FormatRedacted {
		return []string{ui.Plural(int64(len(all)), "reason")}
	}
	return append([]string{}, all...)
}

// hideReasons leaves out the reasons of an operator that are shown elsewhere.
func (s *Renames) hideReasons(id string) {
	for i := range s.List {
		s.List[i].shown = s.List[i].shown || s.List[i].ID == id
	}
}

// appendNames warns of names that changed.
func (s *Renames) appendNames(d *ui.Document) {
	for _, n := range s.Names {
		d.Remark("%s kept its id, and its name changed: %s → %s. Flink matches state to operators by id, so this operator may get the state of another one.",
			ui.Quote(n.Operator), ui.Quote(n.Old), ui.Quote(n.New))
	}
}

// AppendTo appends the suggestions.
func (s *Renames) AppendTo(d *ui.Document) {
	var likely []string
	for _, n := range s.List {
		if !n.Likely {
			continue
		}
		text := fmt.Sprintf("%s is likely %s under another id", ui.Quote(n.Operator), ui.Quote(n.From[0].Operator))
		if !n.shown {
			text += ": " + strings.Join(n.From[0].Reasons, ", ")
		}
		likely = append(likely, text)
	}
	if len(likely) > 0 {
		d.Line("%s%s", strings.Join(likely, ".\n"), s.how(len(likely)))
	}
	for i := range s.List {
		s.List[i].appendOpen(d)
	}
	if s.skipped {
		d.Line("Renamed operators were not looked for: too many came and went.")
	}
}

// how says after the last of n likely renamings how to rename the operators.
func (s *Renames) how(n int) string {
	switch {
	case s.Command == "" && n == 1:
		return "; with its new uid, which --names FILE can tell, spt rename gives it to the old snapshot."
	case s.Command == "":
		return ".\nWith their new uids, which --names FILE can tell, spt rename gives them to the old snapshot."
	case n == 1:
		return "; this gives the old snapshot the new uid:\n  " + s.Command
	}
	return ".\nThis gives the old snapshot the new uids, all at once:\n  " + s.Command
}

// maxCandidates is how many operators are named that may be one.
const maxCandidates = 3

// appendOpen appends a suggestion that several operators fit.
func (n *Rename) appendOpen(d *ui.Document) {
	if n.Likely {
		return
	}
	d.Line("%s may be under another id in the old snapshot, which is not certain:", ui.Quote(n.Operator))
	for i, f := range n.From {
		if i == maxCandidates && len(n.From) > maxCandidates+1 {
			d.Line("  or one of %d more", len(n.From)-i)
			break
		}
		text := "  " + ui.Quote(f.Operator)
		if f.Kept {
			text += ", whose id is still there"
		}
		if len(f.Reasons) > 0 {
			text += ": " + strings.Join(f.Reasons, ", ")
		}
		d.Line("%s", text)
	}
}
