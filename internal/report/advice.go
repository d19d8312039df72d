package report

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/shell"
)

// mentions are the words of a remedy, %s, together with the command or flag that does its
// action, where a text names that without all that it needs.
var mentions = map[finding.Action]string{
	finding.Verify:         "%s (spt verify)",
	finding.Salvage:        "%s (spt inspect --salvage)",
	finding.ShowElements:   "%s (spt cat)",
	finding.RenameOperator: "%s (spt rename)",
	finding.DropOperator:   "%s (spt drop)",
	finding.DropInFlight:   "%s (spt drop --channels)",
	finding.WriteMapping:   "%s (spt relocate --map OLD=NEW)",
	finding.MapFiles:       "%s with --map OLD=NEW",
	finding.SearchPath:     "%s of SPT_PATH",
	finding.NameUIDs:       "%s with --names FILE",
	finding.NameRelease:    "%s with --flink VERSION",
	finding.KeepMissing:    "%s with --missing keep",
	finding.LeaveOperator:  "%s with --keyed leave",
	finding.BuildCanonical: "%s with --keyed canonical",
	finding.Overwrite:      "add --overwrite to %s",
}

// Advice returns what can be done, in words and commands: alternatives in one line. A
// command that can be pasted ends its line, after a colon and two spaces.
func (r *Run) Advice(all []finding.Remedy) string {
	var b strings.Builder
	clauses := false // in the line
	for i, m := range all {
		text, command := r.Hide(m.Words), r.commandFor(m)
		if command == "" {
			text = r.mention(text, m)
		}
		b.WriteString(text)
		clauses = clauses || m.Also || strings.Contains(text, ", ")
		switch rest := all[i+1:]; {
		case command != "":
			b.WriteString(":  " + command)
			if clauses = false; len(rest) > 0 {
				b.WriteString("\n")
			}
		case len(rest) == 0:
		case rest[0].Also:
			b.WriteString("; ")
		case len(rest) > 1 && !rest[1].Also:
			b.WriteString(", ")
		case clauses:
			b.WriteString("; or ")
		default:
			b.WriteString(", or ")
		}
	}
	return b.String()
}

// mention adds to words what does the action.
func (r *Run) mention(words string, m finding.Remedy) string {
	if m.Action == finding.ReadOutside {
		const most = 5
		for i, p := range m.Locations {
			switch i {
			case 0:
				words += ", add --follow " + shell.Quote(r.Text(p))
			case most:
				return words + " …"
			default:
				words += " --follow " + shell.Quote(r.Text(p))
			}
		}
		return words
	}
	with := mentions[m.Action]
	if with == "" {
		return words
	}
	if len(m.Locations) > 0 { // where files are not
		with = strings.Replace(with, "OLD=NEW", shell.Quote(r.Text(m.Locations[0]))+"=DIR", 1)
	}
	return fmt.Sprintf(with, words)
}

// commandFor returns the command that does an action, with the snapshot of this run, or
// "" where something that it needs is not known. OUT is for the user to choose.
func (r *Run) commandFor(m finding.Remedy) string {
	in := "IN"
	if r.Input != "" {
		in = shell.Quote(r.Input)
	}
	operator, state := shell.Quote(r.name(m.Operator)), shell.Quote(r.name(m.State))
	location := ""
	if len(m.Locations) > 0 {
		location = r.Hide(shell.Quote(m.Locations[0]))
	}
	switch {
	case m.Action == finding.Open && location != "":
		command := r.Command
		if command == "" {
			command = "inspect"
		}
		return "spt " + command + " " + location
	case m.Action == finding.List && location != "":
		return "spt ls " + location
	case m.Action == finding.Copy:
		return "spt convert " + in + " OUT"
	case m.Action == finding.CountElements:
		return "spt cat " + in + " --state " + state + " --distinct"
	case m.Action == finding.FindDuplicates:
		return "spt prune-union " + in
	case m.Action == finding.KeepOneOfEach:
		return "spt prune-union " + in + " OUT --state " + state + " --keep distinct"
	case m.Action == finding.KeepUnproven:
		return "spt prune-union " + in + " OUT --state " + state + " --keep distinct --accept-unproven"
	case m.Action == finding.RescaleOther:
		return "spt rescale B OUT --to " + m.To
	case m.Action == finding.Regroup:
		return "spt rescale " + in + " OUT --max-parallelism " + m.To
	case m.Operator == "":
		return ""
	case m.Action == finding.DropOperator:
		return "spt drop " + in + " OUT --operator " + operator
	case m.Action == finding.RenameState:
		return "spt rename " + in + " OUT --operator " + operator + " --state-name " + shell.Quote(r.name(m.State)+"="+r.name(m.To))
	case m.Action == finding.SetMaxParallelism:
		return "spt set " + in + " OUT --operator " + operator + " --max-parallelism " + m.To
	case m.Action == finding.SetMode:
		return "spt set " + in + " OUT --operator " + operator + " --state " + state + " --mode " + m.To
	}
	return ""
}

// name returns a name from a file as [Run.Text] does, and the beginning of an id as it
// is.
func (r *Run) name(s string) string {
	if id.MatchString(s) {
		return s
	}
	return r.Text(s)
}

// alike is what is the same in the advice of findings of one kind.
func alike(all []finding.Remedy) string {
	var b strings.Builder
	for _, m := range all {
		b.WriteString(m.Words + " " + string(m.Action) + "\n")
	}
	return b.String()
}
