package reference

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/savepoint-tools/spt/cmd/spt/command"
)

// Directories returns the directories under docs that hold only generated files.
func Directories() []string { return []string{"cli", "man", "schema"} }

// Files returns every generated file, by its path under docs.
func Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	root := command.New(command.OSEnv())
	for _, c := range commands(root) {
		files[path.Join("cli", pageName(c))] = []byte(markdown(c))
		files[path.Join("man", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")] = []byte(man(c))
	}
	for _, a := range Answers() {
		s, err := a.Schema()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		files[path.Join("schema", a.Name+".json")] = s
	}
	files["types.md"] = []byte(typesPage())
	return files, nil
}

// commands returns a command and all its subcommands, ordered by name.
func commands(c *cobra.Command) []*cobra.Command {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	all := []*cobra.Command{c}
	for _, sub := range children(c) {
		all = append(all, commands(sub)...)
	}
	return all
}

// children returns the subcommands that have a page: help has none, and the shell
// scripts share the page of completion.
func children(c *cobra.Command) []*cobra.Command {
	var subs []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && c.Name() != "completion" {
			subs = append(subs, sub)
		}
	}
	slices.SortFunc(subs, func(a, b *cobra.Command) int { return cmp.Compare(a.Name(), b.Name()) })
	return subs
}

// block is a paragraph, or preformatted lines.
type block struct {
	lines   []string
	literal bool
}

// blocks splits a long description into paragraphs and preformatted, indented
// lines.
func blocks(text string) []block {
	var all []block
	end := true
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if strings.TrimSpace(line) == "" {
			end = true
			continue
		}
		literal := strings.HasPrefix(line, "  ")
		if end || all[len(all)-1].literal != literal {
			all = append(all, block{literal: literal})
		}
		b := &all[len(all)-1]
		b.lines = append(b.lines, strings.TrimPrefix(line, "  "))
		end = false
	}
	return all
}

// long returns the long description of a command, or its short one if it has
// none.
func long(c *cobra.Command) string {
	if c.Name() == "completion" || c.Long == "" {
		return c.Short + "."
	}
	return c.Long
}

// synopsis returns the usage line of a command.
func synopsis(c *cobra.Command) string {
	if len(children(c)) > 0 {
		return c.CommandPath() + " COMMAND [flags]"
	}
	return c.UseLine()
}
