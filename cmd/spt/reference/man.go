package reference

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/cmd/spt/command"
)

// manDate is fixed, so that the pages depend only on the commands.
const manDate = "2026-12-01"

// man returns the man page of a command.
func man(c *cobra.Command) string {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".\\\" Generated from the command line: cd tools && go run ./gen\n")
	fmt.Fprintf(&b, ".TH %s 1 %s spt \"User commands\"\n", strings.ToUpper(name), manDate)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(synopsis(c)))
	b.WriteString(".SH DESCRIPTION\n")
	for _, p := range blocks(long(c)) {
		if p.literal {
			manLiteral(&b, p.lines)
			continue
		}
		b.WriteString(".PP\n")
		for _, line := range p.lines {
			b.WriteString(roff(line) + "\n")
		}
	}
	if len(children(c)) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, group := range command.Groups(c) {
			fmt.Fprintf(&b, ".SS %s\n", roff(group.Title))
			for _, sub := range group.Commands {
				fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(strings.ReplaceAll(sub.CommandPath(), " ", "-")), roff(sub.Short))
			}
		}
	}
	manFlags(&b, "OPTIONS", command.Flags(c.LocalNonPersistentFlags()))
	manFlags(&b, "OPTIONS OF EVERY COMMAND", command.OfStores(command.CommonFlags(c), false))
	manFlags(&b, "OPTIONS FOR OBJECT STORES", command.OfStores(command.CommonFlags(c), true))
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range command.ExitCodes {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s\n", e.Code, roff(e.Meaning))
	}
	if c.HasExample() {
		b.WriteString(".SH EXAMPLES\n")
		var lines []string
		for line := range strings.SplitSeq(c.Example, "\n") {
			lines = append(lines, strings.TrimPrefix(line, "  "))
		}
		manLiteral(&b, lines)
	}
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", c.Root().Name())
	}
	return b.String()
}

func manLiteral(b *strings.Builder, lines []string) {
	b.WriteString(".PP\n.RS 4\n.nf\n")
	for _, line := range lines {
		b.WriteString(roff(line) + "\n")
	}
	b.WriteString(".fi\n.RE\n")
}

func manFlags(b *strings.Builder, title string, all []command.Flag) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, f := range all {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.Head()), roff(f.Text()))
	}
}

// roff escapes a line of text: a leading dot or quote would be a request, and an
// unescaped hyphen is not rendered as an ASCII minus.
func roff(line string) string {
	line = strings.ReplaceAll(line, `\`, `\e`)
	line = strings.ReplaceAll(line, "-", `\-`)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
