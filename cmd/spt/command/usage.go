package command

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is that of a terminal nobody has enlarged. It is fixed, so that
// help reads the same everywhere and in the reference.
const helpWidth = 80

// Flag is what help and the reference say of one flag.
type Flag struct {
	Short, Long string // without dashes; Short may be ""
	Value       string // what stands for its value; "" for a flag that takes none
	Default     string // "" where saying it would say nothing
	Help        string
}

// Flags describes the flags of a set, in their order.
func Flags(fs *pflag.FlagSet) []Flag {
	var all []Flag
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, help := pflag.UnquoteUsage(f)
		// What stands before the text already need not be said in it again.
		if value != "" {
			help = strings.TrimPrefix(strings.Replace(help, ": "+value, "", 1), value+": ")
		}
		flag := Flag{Short: f.Shorthand, Long: f.Name, Value: value, Help: help}
		switch f.DefValue {
		case "", "0", "false", "[]":
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

// CommonFlags are the flags of every command, with what they are to this one.
func CommonFlags(cmd *cobra.Command) []Flag {
	all := Flags(cmd.Root().PersistentFlags())
	for i := range all {
		f := &all[i]
		if f.Long != "output" {
			continue
		}
		switch what := cmd.Annotations[rowsKey]; what {
		case "":
		case never:
			f.Value, f.Help = strings.TrimSuffix(f.Value, "|csv"), "form of the answer"
		default:
			f.Help = "form of the answer; csv only without " + what
		}
	}
	return all
}

// Head is the flag as it is typed.
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

// Text is what the flag does, and its default.
func (f Flag) Text() string {
	if f.Default == "" {
		return f.Help
	}
	return f.Help + " (default " + f.Default + ")"
}

// usage is everything below the first paragraphs of a help text.
func usage(cmd *cobra.Command) string {
	var b strings.Builder
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line = cmd.CommandPath() + " COMMAND [flags]"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", line)
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				entry(&b, 2, 14, c.Name(), c.Short)
			}
		}
	}
	section := func(title string, all []Flag) {
		if len(all) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, f := range all {
			head := f.Head()
			if f.Short == "" {
				head = "    " + head
			}
			entry(&b, 2, 28, head, f.Text())
		}
	}
	section("Flags", Flags(cmd.LocalFlags()))
	if cmd.HasParent() {
		section("Flags of every command", CommonFlags(cmd))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nMore of a command:  %s COMMAND --help\n", cmd.CommandPath())
	}
	b.WriteString("\n" + exitTable() + "\n")
	return b.String()
}

// entry writes a word and what it means, from column on and no wider than help
// may be; a word too long for its column gets a line of its own.
func entry(b *strings.Builder, indent, column int, head, text string) {
	line := strings.Repeat(" ", indent) + head
	if ui.Width(line)+2 > column {
		b.WriteString(line + "\n")
		line = ""
	}
	line += strings.Repeat(" ", column-ui.Width(line))
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && ui.Width(line)+1+ui.Width(word) > helpWidth {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", column), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	b.WriteString(line + "\n")
}

// completeValues lets a shell complete the words that a flag takes, where they
// are a closed set. It is for whom a shell asks: what cobra is told here it keeps
// as long as the process lives, and with it all that the flags lead to.
func completeValues(cmd *cobra.Command) {
	register := func(f *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(f)
		words := strings.Split(value, "|")
		if len(words) < 2 {
			return
		}
		// The only error is a flag that is not there, or one registered twice.
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(of *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if f.Name == "output" && of.Annotations[rowsKey] == never {
				return words[:len(words)-1], cobra.ShellCompDirectiveNoFileComp // csv is the last
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		})
	}
	cmd.LocalNonPersistentFlags().VisitAll(register)
	cmd.PersistentFlags().VisitAll(register)
	for _, c := range cmd.Commands() {
		completeValues(c)
	}
}
