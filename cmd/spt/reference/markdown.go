package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/cmd/spt/command"
)

const generated = "<!-- Generated from the command line: cd tools && go run ./gen -->\n\n"

// pageName returns the file of a command's page. The root command's page is the
// index of its directory.
func pageName(c *cobra.Command) string {
	if !c.HasParent() {
		return "README.md"
	}
	return strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" "), " ", "-") + ".md"
}

// markdown returns the page of a command.
func markdown(c *cobra.Command) string {
	var b strings.Builder
	b.WriteString(generated)
	fmt.Fprintf(&b, "# %s\n\n", c.CommandPath())
	for _, p := range blocks(long(c)) {
		if p.literal {
			fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.Join(p.lines, "\n"))
		} else {
			fmt.Fprintf(&b, "%s\n\n", escapeMarkdown(strings.Join(p.lines, "\n")))
		}
	}
	fmt.Fprintf(&b, "```\n%s\n```\n", synopsis(c))
	if c.HasExample() {
		b.WriteString("\n## Examples\n\n```\n")
		for line := range strings.SplitSeq(c.Example, "\n") {
			b.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		}
		b.WriteString("```\n")
	}
	if len(children(c)) > 0 {
		b.WriteString("\n## Commands\n")
		for _, group := range command.Groups(c) {
			fmt.Fprintf(&b, "\n| %s | |\n|---|---|\n", strings.ToLower(group.Title))
			for _, sub := range group.Commands {
				fmt.Fprintf(&b, "| [%s](%s) | %s |\n", sub.CommandPath(), pageName(sub), cell(sub.Short))
			}
		}
	}
	markdownFlags(&b, "Flags", command.Flags(c.LocalNonPersistentFlags()))
	if c.HasParent() {
		fmt.Fprintf(&b, "\nFlags of every command and exit codes: see [%s](README.md#flags-of-every-command).\n", c.Root().Name())
		all, mine := command.CommonFlags(c.Root()), command.CommonFlags(c)
		for i, f := range mine {
			if f != all[i] {
				fmt.Fprintf(&b, "`%s` here: %s.\n", f.Head(), escapeMarkdown(f.Text()))
			}
		}
	} else {
		all := command.Flags(c.PersistentFlags())
		markdownFlags(&b, "Flags of every command", command.OfStores(all, false))
		markdownFlags(&b, "Flags for object stores", command.OfStores(all, true))
		b.WriteString("\n## Exit codes\n\n| code | meaning |\n|---|---|\n")
		for _, e := range command.ExitCodes {
			fmt.Fprintf(&b, "| %d | %s |\n", e.Code, cell(e.Meaning))
		}
	}
	markdownAnswers(&b, c)
	return b.String()
}

func markdownFlags(b *strings.Builder, title string, all []command.Flag) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n| flag | |\n|---|---|\n", title)
	for _, f := range all {
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.ReplaceAll(f.Head(), "|", `\|`), cell(f.Text()))
	}
}

func markdownAnswers(b *strings.Builder, c *cobra.Command) {
	title := "\n## The answer in JSON\n\nFields are added, never renamed or given another meaning.\n\n"
	for _, a := range Answers() {
		if slices.Contains(strings.Split(a.Command, ", "), c.CommandPath()) {
			fmt.Fprintf(b, "%s* [%s.json](../schema/%s.json): %s\n", title, a.Name, a.Name, escapeMarkdown(a.Help))
			title = ""
		}
	}
}

var markdownEscaper = strings.NewReplacer("_", `\_`, "*", `\*`, "<", `\<`)

func escapeMarkdown(s string) string { return markdownEscaper.Replace(s) }

func cell(s string) string { return strings.ReplaceAll(escapeMarkdown(s), "|", `\|`) }
