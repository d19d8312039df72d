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

// Folders are those under docs that hold nothing but generated files.
func Folders() []string { return []string{"cli", "man", "schema"} }

// Files is every generated file, by its path under docs.
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
	return files, nil
}

// commands is a command and all below it, in the order of their names.
func commands(c *cobra.Command) []*cobra.Command {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	all := []*cobra.Command{c}
	for _, sub := range children(c) {
		all = append(all, commands(sub)...)
	}
	return all
}

// children are the commands that are worth a page: help has none, and the
// scripts for shells share the page of completion.
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

// block is a paragraph, or lines that keep their form.
type block struct {
	lines   []string
	literal bool
}

// blocks takes a long description apart. Lines that are indented keep their form.
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

// long is the description of a command; one that has none is described by its
// short one.
func long(c *cobra.Command) string {
	if c.Name() == "completion" || c.Long == "" {
		return c.Short + "."
	}
	return c.Long
}

// synopsis is how the command is typed.
func synopsis(c *cobra.Command) string {
	if len(children(c)) > 0 {
		return c.CommandPath() + " COMMAND [flags]"
	}
	return c.UseLine()
}
