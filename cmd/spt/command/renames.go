package command

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// RenameRow is an operator of the newer snapshot, or of the job, that the older
// snapshot may have under another id.
type RenameRow struct {
	Operator string       `json:"operator"`
	ID       string       `json:"id" jsonschema:"description=new"`
	Likely   bool         `json:"likely" jsonschema:"description=exactly one operator fits"`
	From     []RenameFrom `json:"from" jsonschema:"description=operators of the older snapshot that fit"`

	told bool // its reasons are shown elsewhere
}

// RenameFrom is an operator that may have been renamed.
type RenameFrom struct {
	Operator string   `json:"operator"`
	ID       string   `json:"id"`
	Reasons  []string `json:"reasons"`
	Kept     bool     `json:"kept,omitempty" jsonschema:"description=the newer snapshot has its id too"`
}

// NameChangeRow is an operator whose id stayed and whose stored name changed.
type NameChangeRow struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	Old      string `json:"old_name"`
	New      string `json:"new_name"`
}

// renameRows are the suggestions of diff and of check.
type renameRows struct {
	renames []RenameRow
	names   []NameChangeRow
	command string // renames all that are likely; "" where a uid is not known
	skipped bool
	noUID   bool // of one that is likely
}

// renames makes the suggestions for the snapshot at path.
func (e *Env) renames(r *transform.Renames, path string) (rows renameRows) {
	if r == nil {
		return rows
	}
	rows.skipped = r.Skipped
	var uids []string
	for k, list := range [][]transform.LikelyRename{r.Likely, r.Open} {
		likely := k == 0
		for i := range list {
			n := &list[i]
			row := RenameRow{Operator: e.run.Text(n.Label()), ID: n.ID.String(), Likely: likely, From: []RenameFrom{}}
			uid := n.UID
			if uid == "" {
				uid = e.run.Learned(row.ID)
			}
			if uid != "" && format.OperatorIDOf(uid).String() != row.ID {
				uid = "" // the job sets the id itself, which no uid gives
			}
			if n.Operator != nil {
				row.Operator = e.run.Label(n.Operator)
			}
			for _, f := range n.From {
				row.From = append(row.From, RenameFrom{e.run.Label(f.Operator), f.Operator.ID.String(), e.reasons(f.Reasons), f.Kept})
			}
			rows.renames = append(rows.renames, row)
			if likely {
				rows.noUID = rows.noUID || uid == ""
				uids = append(uids, fmt.Sprintf(" --uid %s=%s", n.From[0].Operator.ID, shell.Quote(uid)))
			}
		}
	}
	for _, n := range r.Names {
		rows.names = append(rows.names, NameChangeRow{e.run.Label(n.New), n.New.ID.String(), e.run.Text(n.Old.Name.String()), e.run.Text(n.New.Name.String())})
	}
	if len(uids) > 0 && !rows.noUID && e.run.Format != ui.FormatRedacted {
		rows.command = fmt.Sprintf("spt rename %s OUT%s", shell.Quote(path), strings.Join(uids, ""))
	}
	return rows
}

// reasons are those of a likely renaming, of which one may be a name.
func (e *Env) reasons(all []string) []string {
	if e.run.Format == ui.FormatRedacted {
		return []string{ui.Plural(int64(len(all)), "reason")}
	}
	return append([]string{}, all...)
}

// maxCandidates is how many operators are named that may be one.
const maxCandidates = 3

// nameText warns of names that changed.
func (r *renameRows) nameText() string {
	var b strings.Builder
	for _, n := range r.names {
		fmt.Fprintf(&b, "%s %s kept its id, and its name changed: %s → %s. Flink matches state to operators by id, so this operator may get the state of another one.\n",
			ui.Look("!"), ui.Quote(n.Operator), ui.Quote(n.Old), ui.Quote(n.New))
	}
	return b.String()
}

// text is the suggestions for people.
func (r *renameRows) text() string {
	var b strings.Builder
	likely := 0
	for _, n := range r.renames {
		if !n.Likely {
			continue
		}
		if likely++; likely > 1 {
			b.WriteString(".\n")
		}
		fmt.Fprintf(&b, "%s is likely %s under another id", ui.Quote(n.Operator), ui.Quote(n.From[0].Operator))
		if !n.told {
			b.WriteString(": " + strings.Join(n.From[0].Reasons, ", "))
		}
	}
	switch {
	case likely == 0:
	case r.command == "" && likely == 1:
		b.WriteString("; with its new uid, which --names FILE can tell, spt rename gives it to the old snapshot.\n")
	case r.command == "":
		b.WriteString(".\nWith their new uids, which --names FILE can tell, spt rename gives them to the old snapshot.\n")
	case likely == 1:
		fmt.Fprintf(&b, "; this gives the old snapshot the new uid:\n  %s\n", r.command)
	default:
		fmt.Fprintf(&b, ".\nThis gives the old snapshot the new uids, all at once:\n  %s\n", r.command)
	}
	for _, n := range r.renames {
		if n.Likely {
			continue
		}
		fmt.Fprintf(&b, "%s may be under another id in the old snapshot, which is not certain:\n", ui.Quote(n.Operator))
		for i, f := range n.From {
			if i == maxCandidates && len(n.From) > maxCandidates+1 {
				fmt.Fprintf(&b, "  or one of %d more\n", len(n.From)-i)
				break
			}
			fmt.Fprintf(&b, "  %s", ui.Quote(f.Operator))
			if f.Kept {
				b.WriteString(", whose id is still there")
			}
			if len(f.Reasons) > 0 {
				b.WriteString(": " + strings.Join(f.Reasons, ", "))
			}
			b.WriteString("\n")
		}
	}
	if r.skipped {
		b.WriteString("Renamed operators were not looked for: too many came and went.\n")
	}
	return b.String()
}
