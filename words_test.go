package spt_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// scope is a set of kinds of text.
type scope int

const (
	literals scope = 1 << iota // help, errors and output: string literals of more than one word
	comments
	markdown // outside code; docs/cli and docs/man are made of literals
	anywhere = literals | comments | markdown
)

// wording is a pattern that the project's text avoids. In re, a space matches a
// line break too.
type wording struct {
	re      string
	instead string
	where   scope
	like    string   // an example that must match
	except  []string // a match within a match of one of these is allowed
	pending int      // matches that are left from before this test; it may only fall
}

// wordings are the patterns of text that must not come back. The list follows
// the style guide: plain technical English and the terms that Flink uses.
var wordings = []wording{
	// Grammar.
	{re: `(is|are) whether`, instead: "reports whether", where: comments, like: "Same is whether two are equal"},
	{re: `gives|gave|giving`, instead: "returns, yields", where: anywhere, like: "gives the savepoint"},
	{re: `stands?|stood|standing`, instead: "is, precedes, occurs", where: anywhere, like: "what stands in front", except: []string{`stands? for`, `stand-?alone`}},
	{re: `lies?|lay|lying`, instead: "is stored, is", where: anywhere, like: "state lies inline"},
	{re: `behind`, instead: "after, past, trailing", where: anywhere, like: "bytes behind a value"},
	{re: `beside`, instead: "next to", where: anywhere, like: "beside _metadata"},
	{re: `(is|are|was|were) (no|none)`, instead: "is not a", where: anywhere, like: "a header that is none", except: []string{`there (is|are|was|were) (no|none)`, `(is|are) no (longer|more|less)`}},
	{re: `(that|those) of|of (which|whom)`, instead: "repeat the noun", where: anywhere, like: "that of the handle"},
	{re: `for who|who picked|by who|whoever|whom`, instead: "the caller, callers", where: anywhere, like: "for who picked none"},
	{re: `who`, instead: "a noun: the caller, the reader of the file", where: literals | comments, like: "who reads them all", pending: 1},
	{re: `(is|are|was|were|be|been) said`, instead: "recorded as, reported", where: anywhere, like: "element is said to be bytes 3 to 9"},
	{re: `told`, instead: "determined, called with, reported", where: anywhere, like: "Progress is told"},
	{re: `anew`, instead: "again", where: anywhere, like: "counted anew"},
	{re: `, for (it|they|there|that|this|what|nothing|no)`, instead: "because, since", where: anywhere, like: "refused, for it is a file", except: []string{`, for (this|that|no) [a-z]+[,.]`}},
	{re: `be had`, instead: "available, cannot be read", where: anywhere, like: "files that are not to be had"},
	{re: `promised`, instead: "expected, recorded", where: anywhere, like: "as long as promised"},
	{re: `(has|have|had) not`, instead: "does not have", where: anywhere, like: "serializers it has not", except: []string{`(has|have|had) not (yet )?([a-z]+(ed|en|ne|wn)|begun|read|run)`}},
	{re: `there (is|are): `, instead: "available: a, b", where: anywhere, like: "there is: a, b"},
	{re: `not a number of|: no parallelism`, instead: "must be 1 to N", where: literals, like: "--from 0: no parallelism"},
	{re: `in vain|in (its|their) stead|therein|thereof|all the same|of its own accord`, instead: "plain words", where: anywhere, like: "tried in vain"},
	{re: `bad day`, instead: "name the case", where: anywhere, like: "Each of these is a bad day"},

	// Metaphors.
	{re: `in hand|(hands|handed|handing) (out|over|back|to|on|it)|hand (out|over)`, instead: "assigns, returns, passes", where: anywhere, like: "handed out by Flink"},
	{re: `dealt|dealer|deals? out`, instead: "redistributed, assigned", where: anywhere, like: "dealt out in turn"},
	{re: `crowded`, instead: "bucket collision", where: anywhere, like: "a crowded bucket"},
	{re: `world`, instead: "mu, everything", where: literals | comments, like: "world is held"},
	{re: `lose (its|their) ground`, instead: "fault", where: anywhere, like: "can lose its ground"},
	{re: `warm(s|ed|ing)?`, instead: "prefetch", where: anywhere, like: "warms the table", except: []string{`warm up`}},
	{re: `slabs?`, instead: "arena", where: anywhere, like: "a slab of entries"},
	{re: `spare`, instead: "pool, free", where: anywhere, like: "a spare buffer"},
	{re: `honest(ly)?`, instead: "genuine", where: anywhere, like: "honest repetitions"},
	{re: `let(s|ting)? go`, instead: "drop, release", where: anywhere, like: "the others let go"},
	{re: `house`, instead: "repository, packages", where: anywhere, like: "the layout of the house"},

	// Terms.
	{re: `records? in flight|in flight`, instead: "in-flight data", where: anywhere, like: "records in flight", pending: 1},
	{re: `descriptions? of (the |its |a )?state`, instead: "state meta info, serializer snapshot", where: anywhere, like: "the description of the state"},
	{re: `marks? of (a|the) finished|mark of finished`, instead: "fully finished", where: anywhere, like: "the mark of a finished operator"},
	{re: `interface that Flink dropped`, instead: "legacy (pre-1.4) operator state", where: anywhere, like: "the interface that Flink dropped"},
	{re: `forms?`, instead: "encoding, format, layout", where: anywhere, like: "the form of a stream", except: []string{`canonical form`}},
	{re: `restore products?|products? of restores`, instead: "duplicated by restores", where: anywhere, like: "restore product"},
	{re: `fits not|FitsNot|unsure`, instead: "compatible as is, after migration, incompatible, unknown", where: anywhere, like: "unsure"},
	{re: `moments?`, instead: "timestamp, instant", where: anywhere, like: "a moment in UTC"},
	{re: `places?`, instead: "location, URI, offset", where: anywhere, like: "another place", except: []string{`Place is where kept`, `regardless of Place`, `in place`, `tak(e|es|en|ing) place`, `decimal places?`, `places? of decimals`}, pending: 2},
	{re: `(further|extra|the|such) copies|copies (in|of) (union|elements)`, instead: "duplicates (union), replicas (broadcast)", where: anywhere, like: "the copies in union state"},
	{re: `folders?`, instead: "directory", where: anywhere, like: "the wrong folder"},
}

// unit is a piece of text: a comment, a literal or a paragraph.
type unit struct {
	file string
	line int
	kind scope
	text string
}

// TestWords keeps words and patterns out of the help, errors, documents and
// comments.
func TestWords(t *testing.T) {
	units := textUnits(t)
	kinds := map[scope]int{}
	for _, u := range units {
		kinds[u.kind]++
	}
	if kinds[literals] < 500 || kinds[comments] < 500 || kinds[markdown] < 100 {
		t.Fatalf("%v: not the whole project", kinds)
	}
	left, lower := 0, map[string]int{}
	for _, w := range wordings {
		found := w.find(units)
		left += len(found)
		dirs := map[string]int{}
		for _, hit := range found {
			dir, _, _ := strings.Cut(hit.file, "/")
			dirs[dir]++
		}
		var counts []string
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			counts = append(counts, fmt.Sprintf("%s %d", dir, dirs[dir]))
		}
		switch {
		case len(found) > w.pending:
			for _, hit := range found {
				t.Errorf("%s:%d: %q; write: %s", hit.file, hit.line, hit.text, w.instead)
			}
			t.Errorf("%s: %d matches, at most %d are left to mend (%s)", w.re, len(found), w.pending, strings.Join(counts, ", "))
		case len(found) < w.pending:
			t.Logf("%s: lower pending from %d to %d (go test -run TestWords . -update)", w.re, w.pending, len(found))
			lower[w.re] = len(found)
			fallthrough
		case len(found) > 0:
			t.Logf("%4d %s (%s)", len(found), w.re, strings.Join(counts, ", "))
			if word := os.Getenv("WORDS"); word != "" && strings.Contains(w.re, word) {
				for _, hit := range found {
					t.Logf("%s:%d: %q; write: %s", hit.file, hit.line, hit.text, w.instead)
				}
			}
		}
	}
	t.Logf("%d patterns; %d literals, %d comments, %d paragraphs; %d matches are left", len(wordings), kinds[literals], kinds[comments], kinds[markdown], left)
	if *update {
		lowerPending(t, lower)
	}
}

// lowerPending writes lower numbers into the table of this file.
func lowerPending(t *testing.T, lower map[string]int) {
	t.Helper()
	const file = "words_test.go"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	pending := regexp.MustCompile(`, pending: \d+`)
	for i, line := range lines {
		for re, n := range lower {
			if strings.HasPrefix(line, "\t{re: `"+re+"`,") {
				left := ""
				if n > 0 {
					left = fmt.Sprintf(", pending: %d", n)
				}
				lines[i] = pending.ReplaceAllString(line, left)
			}
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWordings: each pattern matches its example, and not what to write instead.
func TestWordings(t *testing.T) {
	for _, w := range wordings {
		if len(w.find([]unit{{kind: anywhere, text: strings.ReplaceAll(w.like, " ", "\n")}})) != 1 {
			t.Errorf("%s does not match %q", w.re, w.like)
		}
		if len(w.find([]unit{{kind: anywhere, text: w.instead}})) != 0 {
			t.Errorf("%s matches %q", w.re, w.instead)
		}
	}
}

// find returns where the pattern occurs; the text of a hit is the line with it.
func (w wording) find(units []unit) (hits []unit) {
	compile := func(re string) *regexp.Regexp {
		return regexp.MustCompile(`(?i)` + strings.ReplaceAll(re, " ", `\s+`))
	}
	re := compile(wordBounds(w.re))
	for _, u := range units {
		if u.kind&w.where == 0 {
			continue
		}
		found := re.FindAllStringIndex(u.text, -1)
		if found == nil {
			continue
		}
		var allowed [][]int
		for _, e := range w.except {
			allowed = append(allowed, compile(e).FindAllStringIndex(u.text, -1)...)
		}
		for _, at := range found {
			if slices.ContainsFunc(allowed, func(a []int) bool { return a[0] <= at[0] && at[1] <= a[1] }) {
				continue
			}
			start := strings.LastIndexByte(u.text[:at[0]], '\n') + 1
			end := at[1]
			if i := strings.IndexByte(u.text[end:], '\n'); i >= 0 {
				end += i
			} else {
				end = len(u.text)
			}
			hits = append(hits, unit{u.file, u.line + strings.Count(u.text[:at[0]], "\n"), u.kind, strings.TrimSpace(u.text[start:end])})
		}
	}
	return hits
}

// wordBounds keeps a pattern from matching within words.
func wordBounds(re string) string {
	before, after := `\b`, `\b`
	if strings.HasPrefix(re, ",") {
		before = ""
	}
	if strings.HasSuffix(re, ": ") {
		after = ""
	}
	return before + `(?:` + re + `)` + after
}

// textUnits returns the text of the repository: comments and literals of Go files
// that are not tests, and documents that are not generated.
func textUnits(t *testing.T) (units []unit) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "target" || name == "docs/cli" || name == "docs/man") {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case path.Ext(name) == ".md":
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			units = append(units, paragraphs(name, string(text))...)
		case path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata/"):
			more, err := goText(name)
			if err != nil {
				return err
			}
			units = append(units, more...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return units
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	commentAt  = regexp.MustCompile(`(?m)^\s*(//|/\*|\*/)`)
)

// paragraphs splits a document at empty lines and leaves code out.
func paragraphs(name, text string) (units []unit) {
	code, from := false, 0
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			units = append(units, unit{name, from, markdown, strings.Join(lines, "\n")})
		}
		lines = nil
	}
	for i, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			code = !code
		}
		if fence || code || strings.TrimSpace(line) == "" {
			flush()
			continue
		}
		if len(lines) == 0 {
			from = i + 1
		}
		lines = append(lines, inlineCode.ReplaceAllString(line, "``"))
	}
	flush()
	return units
}

// goText returns the comments and literals of a file, in the order of its lines.
func goText(name string) (units []unit, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, group := range f.Comments {
		var lines []string
		for _, c := range group.List {
			lines = append(lines, commentAt.ReplaceAllString(c.Text, ""))
		}
		units = append(units, unit{name, set.Position(group.Pos()).Line, comments, strings.Join(lines, "\n")})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				break
			}
			text, unquoteErr := strconv.Unquote(n.Value)
			if unquoteErr != nil {
				err = unquoteErr
			}
			if strings.Contains(strings.TrimSpace(text), " ") {
				units = append(units, unit{name, set.Position(n.Pos()).Line, literals, text})
			}
		}
		return true
	})
	slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(a.line, b.line) })
	return units, err
}
