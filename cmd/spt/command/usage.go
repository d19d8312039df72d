package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/ui"
)

// helpWidth is how wide help is at most, and in the reference always.
const helpWidth = 80

// narrowest is the width below which help does not become narrower.
const narrowest = 40

// Flag is what help and the reference say of one flag.
type Flag struct {
	Short, Long string // without dashes; Short may be ""
	Value       string // name of its value; "" for a flag that takes none
	Default     string // "" if it is not worth mentioning
	Help        string
	Store       bool // it says how stores are reached
}

// Flags describes the flags of a set, in their order.
func Flags(fs *pflag.FlagSet) []Flag {
	var all []Flag
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, help := pflag.UnquoteUsage(f)
		if value != "" { // a text that begins with "`VALUE`: ", or ends with ": `a|b`", only names the value
			help = strings.TrimPrefix(help, value+": ")
			if strings.Contains(value, "|") {
				help = strings.Replace(help, ": "+value, "", 1)
			}
		}
		_, store := f.Annotations[storeFlags]
		flag := Flag{Short: f.Shorthand, Long: f.Name, Value: value, Help: help, Store: store}
		switch f.DefValue {
		case "", "0", "0s", "false", "[]":
		default:
			flag.Default = f.DefValue
		}
		if f.Value.Type() == "bool" {
			flag.Value = ""
		}
		all = append(all, flag)
	})
	return all
}

// CommonFlags returns the flags of every command, as they apply to this one.
func CommonFlags(cmd *cobra.Command) []Flag {
	all := slices.DeleteFunc(Flags(cmd.Root().PersistentFlags()), func(f Flag) bool { // the command has its own
		return cmd != cmd.Root() && cmd.LocalNonPersistentFlags().Lookup(f.Long) != nil
	})
	for i := range all {
		f := &all[i]
		if f.Long != "output" {
			continue
		}
		if !cmd.HasParent() {
			break
		}
		var limits []string
		if what := cmd.Annotations[rowsKey]; what != "" && what != never {
			limits = append(limits, "csv only without "+what)
		}
		if what := cmd.Annotations[tableKey]; what != "" && what != always {
			limits = append(limits, "parquet only with "+what)
		}
		f.Value, f.Help = strings.Join(outputsOf(cmd), "|"), "output format"
		if len(limits) > 0 {
			f.Help += "; " + strings.Join(limits, ", ")
		}
	}
	return all
}

// OfStores returns the flags that say how stores are reached, or the others.
func OfStores(all []Flag, store bool) []Flag {
	return slices.DeleteFunc(slices.Clone(all), func(f Flag) bool { return f.Store != store })
}

// Head returns the flag as it is typed.
func (f Flag) Head() string {
	head := "--" + f.Long
	if f.Short != "" {
		head = "-" + f.Short + ", " + head
	}
	if f.Value != "" {
		head += " " + f.Value
	}
	return head
}

// Text returns what the flag does, and its default.
func (f Flag) Text() string {
	if f.Default == "" {
		return f.Help
	}
	return f.Help + " (default " + f.Default + ")"
}

// helpFor returns the help of a command, for a terminal of this width.
func helpFor(cmd *cobra.Command, width int) string {
	width = max(narrowest, min(width, helpWidth))
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	return reflow(long, width) + "\n\n" + usage(cmd, width)
}

// usage is everything below the first paragraphs of a help text.
func usage(cmd *cobra.Command, width int) string {
	var b strings.Builder
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line = cmd.CommandPath() + " COMMAND [flags]"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", line)
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	for _, group := range Groups(cmd) {
		fmt.Fprintf(&b, "\n%s:\n", group.Title)
		for _, c := range group.Commands {
			entry(&b, width, 2, 15, c.Name(), c.Short)
		}
	}
	section := func(title string, all []Flag) {
		all = slices.DeleteFunc(all, func(f Flag) bool { return f.Long == "help" })
		if len(all) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, f := range all {
			head := f.Head()
			if f.Short == "" {
				head = "    " + head
			}
			entry(&b, width, 2, flagColumn(width), head, f.Text())
		}
	}
	if cmd.HasParent() {
		section("Flags", Flags(cmd.LocalNonPersistentFlags()))
		b.WriteString("\n")
		words(&b, width, 2, "", commonLine(cmd))
		words(&b, width, 2, "", storeLine(cmd))
	} else {
		section("Flags of every command", OfStores(Flags(cmd.LocalFlags()), false))
		section("Flags for object stores", OfStores(Flags(cmd.LocalFlags()), true))
		fmt.Fprintf(&b, "\nHelp for a command:  %s COMMAND --help\n", cmd.CommandPath())
	}
	b.WriteString("\n" + exitTable(width) + "\n")
	return b.String()
}

// flagColumn is where the texts of flags begin.
func flagColumn(width int) int {
	if width < 70 {
		return 14
	}
	return 28
}

// commonLine names the flags of every command, each in its shortest spelling.
func commonLine(cmd *cobra.Command) string {
	line := "Common flags (" + cmd.Root().Name() + " --help describes them): -h"
	for _, f := range OfStores(CommonFlags(cmd), false) {
		switch {
		case f.Long == "output":
			line += ", -o " + f.Value
			if _, limit, ok := strings.Cut(f.Help, "; "); ok && cmd.HasParent() {
				line += " (" + limit + ")"
			}
		case f.Short != "":
			line += ", -" + f.Short
		default:
			line += ", --" + f.Long
		}
	}
	return line
}

// storeLine names the flags that say how stores are reached.
func storeLine(cmd *cobra.Command) string {
	var names []string
	for _, f := range OfStores(CommonFlags(cmd), true) {
		names = append(names, "--"+f.Long)
	}
	return "For object stores: " + strings.Join(names, ", ")
}

// Group is a heading of the list of commands, and the commands below it.
type Group struct {
	Title    string
	Commands []*cobra.Command
}

// Groups returns the commands below one by group, in the order of help.
func Groups(cmd *cobra.Command) []Group {
	var all []Group
	for _, g := range cmd.Groups() {
		all = append(all, Group{Title: g.Title})
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				all[len(all)-1].Commands = append(all[len(all)-1].Commands, c)
			}
		}
	}
	if len(all) == 0 && cmd.HasAvailableSubCommands() {
		all = []Group{{Title: "Commands", Commands: cmd.Commands()}}
	}
	return all
}

// entry writes a word and what it means, from column on and no wider than width;
// a word too long for its column gets a line of its own.
func entry(b *strings.Builder, width, indent, column int, head, text string) {
	line := strings.Repeat(" ", indent) + head
	for ui.Width(line) > width { // a list of many values
		cut := strings.LastIndexByte(line[:width], '|') + 1
		if cut == 0 {
			break
		}
		b.WriteString(line[:cut] + "\n")
		line = strings.Repeat(" ", indent+4) + line[cut:]
	}
	if ui.Width(line)+2 > column {
		b.WriteString(line + "\n")
		line = ""
	}
	words(b, width, column, line+strings.Repeat(" ", column-ui.Width(line)), text)
}

// words writes text in lines no wider than width: the first after what is given,
// the others indented.
func words(b *strings.Builder, width, indent int, line, text string) {
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && ui.Width(line)+1+ui.Width(word) > width {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", indent), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
}

// reflow breaks the lines of a long description for a narrow terminal. Paragraphs
// are filled. Of indented lines, those with a second column, after two spaces, are
// filled in it, together with the lines that continue it; others are commands, and
// stay as they are.
func reflow(text string, width int) string {
	if width >= helpWidth {
		return text
	}
	var b strings.Builder
	paragraph := ""
	head, column := "", 0 // of an entry, whose text is in paragraph
	flush := func() {
		switch {
		case column > 0:
			entry(&b, width, 2, min(column, flagColumn(width)+8), head, paragraph)
		case paragraph != "":
			words(&b, width, 0, "", paragraph)
		}
		paragraph, head, column = "", "", 0
	}
	for line := range strings.SplitSeq(text, "\n") {
		rest := strings.TrimLeft(line, " ")
		indent := len(line) - len(rest)
		switch name, help, ok := strings.Cut(rest, "  "); {
		case rest == "":
			flush()
			b.WriteString("\n")
		case indent == 0:
			if column > 0 {
				flush()
			}
			paragraph += " " + rest
		case column > 0 && indent == column:
			paragraph += " " + rest
		case ok && indent == 2 && !strings.HasPrefix(rest, "spt "):
			flush()
			head, paragraph = name, help
			column = indent + ui.Width(rest) - ui.Width(strings.TrimLeft(help, " "))
		default:
			flush()
			b.WriteString(line + "\n")
		}
	}
	flush()
	return strings.TrimRight(b.String(), "\n")
}
