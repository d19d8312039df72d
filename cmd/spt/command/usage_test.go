package command

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/ui"
)

// allCommands returns the root and every command below it that has a page of its
// own; the scripts of completion are cobra's.
func allCommands() []*cobra.Command {
	root := New(OSEnv())
	all := append([]*cobra.Command{root}, root.Commands()...)
	for _, c := range all {
		c.InitDefaultHelpFlag()
	}
	return all
}

// goTypes are what pflag shows as the name of a value that has none.
var goTypes = regexp.MustCompile(`^(string|strings|stringArray|stringSlice|stringToString|bool|u?int(8|16|32|64)?(Slice)?|ints|uints|float(32|64)?|duration|count|ip|bytesHex|bytesBase64|size|value)$`)

// TestFlagsNameTheirValues: the help of every flag of every command names its value,
// with a word in capitals or the words it takes, and reads as a sentence.
func TestFlagsNameTheirValues(t *testing.T) {
	flags := 0
	for _, c := range allCommands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			flags++
			at := c.CommandPath() + " --" + f.Name
			value, text := pflag.UnquoteUsage(f)
			if f.Value.Type() == "bool" {
				if value != "" {
					t.Errorf("%s takes no value, and its help names one: %s", at, value)
				}
			} else if !regexp.MustCompile(`^([A-Z]+(=[A-Z]+)?|[a-z0-9-]+(\|[a-z0-9-]+)+)$`).MatchString(value) || goTypes.MatchString(value) {
				t.Errorf("%s: %q is not the name of its value", at, value)
			}
			if text == "" || text != strings.TrimSpace(text) || strings.Contains(text, "  ") || strings.HasSuffix(text, ".") || strings.ContainsAny(text, "`\n\t") {
				t.Errorf("%s: %q", at, text)
			}
			// pflag takes a quoted word as the name of the value. Where there are several to
			// choose from, the words of a sentence are not it.
			for _, one := range Flags(c.Flags()) {
				if one.Long == f.Name && (one.Help == "" || strings.HasPrefix(one.Help, ":") || strings.HasPrefix(one.Help, one.Value+":") && one.Value != "") {
					t.Errorf("%s: help %q", at, one.Help)
				}
			}
		})
	}
	if flags < 100 {
		t.Errorf("%d flags: that is not all", flags)
	}
}

// TestEnumeratedFlags: what help names as the words of a flag is what it takes.
func TestEnumeratedFlags(t *testing.T) {
	words := 0
	for _, c := range allCommands() {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, _ := pflag.UnquoteUsage(f)
			all := strings.Split(value, "|")
			if len(all) < 2 {
				return
			}
			if f.DefValue != "" && !slices.Contains(all, f.DefValue) {
				t.Errorf("%s --%s: the default %q is not one of %v", c.CommandPath(), f.Name, f.DefValue, all)
			}
			for _, word := range all {
				words++
				if err := f.Value.Set(word); err != nil {
					t.Errorf("%s --%s %s: %v", c.CommandPath(), f.Name, word, err)
				}
			}
		})
	}
	if words < 40 {
		t.Errorf("%d words: that is not all", words)
	}
}

// TestShorthandsMeanOneThing: a letter is short for the same flag in every command,
// and -v is not --version.
func TestShorthandsMeanOneThing(t *testing.T) {
	meaning := map[string]string{}
	for _, c := range allCommands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Shorthand == "" {
				return
			}
			if was, ok := meaning[f.Shorthand]; ok && was != f.Name {
				t.Errorf("-%s is --%s and, of %s, --%s", f.Shorthand, was, c.CommandPath(), f.Name)
			}
			meaning[f.Shorthand] = f.Name
		})
	}
	if meaning["v"] != "verbose" || len(meaning) < 4 {
		t.Errorf("%v", meaning)
	}
}

// TestGroups: each command is in a group, once.
func TestGroups(t *testing.T) {
	root := New(OSEnv())
	times := map[string]int{}
	var titles []string
	for _, g := range Groups(root) {
		titles = append(titles, g.Title)
		for _, c := range g.Commands {
			times[c.Name()]++
		}
	}
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && times[c.Name()] != 1 {
			t.Errorf("%s is in %d groups", c.Name(), times[c.Name()])
		}
	}
	if want := "Look Compare Check Change Tools"; strings.Join(titles, " ") != want {
		t.Errorf("%v, expected %s", titles, want)
	}
}

// TestHelpFits: no line of help is wider than the terminal, down to 40 columns and
// up to 80. Lines that are meant to be copied are as long as they are.
func TestHelpFits(t *testing.T) {
	for _, width := range []int{40, 60, 79, 80, 200} {
		for _, c := range allCommands() {
			example, wide := false, 0
			for line := range strings.SplitSeq(helpFor(c, width), "\n") {
				if line == "Examples:" {
					example = true
				} else if line == "" {
					example = false
				}
				copied := example || strings.HasPrefix(line, "  spt ") || strings.HasPrefix(line, "  ") && slices.Contains(strings.Split(c.Long, "\n"), line)
				if width < 60 && strings.HasPrefix(line, "      --") && strings.Contains(line, "|") {
					copied = true // the words of a flag are not broken
				}
				if w := ui.Width(line); w > min(width, helpWidth) && !copied {
					t.Errorf("%s at %d columns: %d: %s", c.Name(), width, w, line)
				}
				wide = max(wide, ui.Width(line))
			}
			if wide < min(width, helpWidth)-15 {
				t.Errorf("%s at %d columns: nothing is wider than %d", c.Name(), width, wide)
			}
		}
	}
}

// TestReflowKeepsWords: a narrow terminal shows the same words in the same order.
func TestReflowKeepsWords(t *testing.T) {
	for _, c := range allCommands() {
		for _, width := range []int{40, 60} {
			if got, want := strings.Fields(reflow(c.Long, width)), strings.Fields(c.Long); !slices.Equal(got, want) {
				t.Errorf("%s at %d columns: %q, expected %q", c.Name(), width, got, want)
			}
		}
	}
	got := reflow("One two\nthree four.\n\n  name   a meaning that\n         goes on\n  spt x  --long-command --that-is-copied --as-it-is\n\nEnd.", 40)
	want := "One two three four.\n\n  name   a meaning that goes on\n  spt x  --long-command --that-is-copied --as-it-is\n\nEnd."
	if got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

// TestCommonFlagsInOneLine: the help of a command names the common flags, and
// describes them in the help of spt only.
func TestCommonFlagsInOneLine(t *testing.T) {
	root := New(OSEnv())
	describes := root.PersistentFlags().Lookup("quiet").Usage
	if !strings.Contains(helpFor(root, 80), describes) {
		t.Errorf("spt --help does not say %q", describes)
	}
	for _, c := range root.Commands() {
		help := helpFor(c, 80)
		if !strings.Contains(help, "Common flags") || strings.Contains(help, describes) {
			t.Errorf("%s:\n%s", c.Name(), help)
		}
		root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(help, "--"+f.Name) && !strings.Contains(help, " -"+f.Shorthand+",") && !strings.Contains(help, " -"+f.Shorthand+" ") {
				t.Errorf("%s: no --%s", c.Name(), f.Name)
			}
		})
	}
}

func TestNear(t *testing.T) {
	names := []string{"kafka-source", "kafka-sink", "Enrich", "enrich-v2", "counts", "numbers", "id", ""}
	for want, expected := range map[string]string{
		"kafka-sorce":  "kafka-source",
		"kafka-soucre": "kafka-source", // neighbours exchanged
		"kafka":        "kafka-sink kafka-source",
		"enrich":       "Enrich enrich-v2",
		"ENRICH-V1":    "enrich-v2 Enrich",
		"cuonts":       "counts",
		"it":           "id",
		"xyz":          "",
		"":             "",
		"frobnicate":   "",
	} {
		if got := strings.Join(near(want, names), " "); got != expected {
			t.Errorf("%q: %q, expected %q", want, got, expected)
		}
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf("state-%d", i)
	}
	if got := near("state-", many); len(got) != nearMost {
		t.Errorf("%v", got)
	}
	if got := near("same", []string{"sane", "sane", "sane"}); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if got := near(strings.Repeat("long", 100_000), []string{strings.Repeat("long", 100_000)}); len(got) != 0 {
		t.Errorf("a name too long to compare is near: %d", len(got))
	}
}

// TestDistance: pairs counted by hand.
func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"a", ""}: 1, {"", "abc"}: 3, {"abc", "abc"}: 0, {"abc", "acb"}: 1, {"kitten", "sitting"}: 3, {"ca", "abc"}: 3, {"größe", "grösse"}: 2,
	} {
		if got := distance([]rune(pair[0]), []rune(pair[1])); got != want {
			t.Errorf("%q: %d, expected %d", pair, got, want)
		}
	}
}

// TestSuggestForNamesCommands: the commands that other names suggest exist, and
// none of these names is a command.
func TestSuggestForNamesCommands(t *testing.T) {
	root := New(OSEnv())
	names := map[string]bool{}
	for _, c := range root.Commands() {
		names[c.Name()] = true
	}
	other := map[string]string{}
	for _, c := range root.Commands() {
		for _, o := range c.SuggestFor {
			if names[o] || other[o] != "" {
				t.Errorf("%s, of %s, is a command or given twice", o, c.Name())
			}
			other[o] = c.Name()
		}
	}
	if len(other) < 20 {
		t.Errorf("%v", slices.Sorted(maps.Keys(other)))
	}
}
