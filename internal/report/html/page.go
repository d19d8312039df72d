package html

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // for the parts of the page
	"encoding/base64"
	"io"
	"time"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Head begins every page that Write writes.
const Head = "<!DOCTYPE html>\n<!-- spt report -->\n"

//go:embed style.css
var style string

//go:embed script.js
var script string

// Page is what a page shows. Inspect and Verify are needed.
type Page struct {
	Made    time.Time
	Version string // of spt
	Read    bool   // all state was read
	Inspect *report.Inspect
	Verify  *report.Verify
	Offsets *report.Offsets // nil: not read
	Schema  *report.Schema  // nil: not read
	Trend   *report.Trend   // nil: of one snapshot
	NotRead []string        // parts that could not be read, and why
}

// The limits of [report.Inspect.AddKeyGroups] of a page.
const (
	MaxGrouped = 8     // operators
	MaxGroups  = 32768 // key groups of all of them
)

// Write writes a page.
func Write(w io.Writer, p Page) error {
	if _, err := io.WriteString(w, Head); err != nil {
		return err
	}
	o := printer{bufio.NewWriter(w)}
	o.page(newView(&p))
	return o.w.Flush()
}

// view is what the sections show.
type view struct {
	Policy string // of the content that a browser may load

	Path, What, HowMuch string
	Verdict             string
	Soundness           string // a class of the style sheet
	Facts               []fact
	NotRead             []string
	Findings            []note
	MoreFindings        string
	Maps                []treemap
	Operators           []operatorRow
	MoreOperators       string
	Unions              []union
	MoreUnions          string
	Groups              []groups
	MoreGroups          string
	Offsets             *offsets
	Schema              *schema
	Trend               *trend
	Version, Made       string
}

type fact struct{ Name, Value string }

func newView(p *Page) *view {
	x := p.Inspect
	v := &view{
		Path: name(x.Path), NotRead: p.NotRead,
		Version: p.Version, Made: p.Made.UTC().Format("2006-01-02 15:04 UTC"),
	}
	sum := sha256.Sum256([]byte(script))
	v.Policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	v.What, v.HowMuch = x.Headline()
	sound, text := p.Verify.Verdict()
	v.Verdict = capital(text)
	switch n := len(x.Warnings); {
	case sound == report.NotSound:
		v.Verdict = "Not sound: " + text
	case sound == report.Sound && n > 0: // what inspect warns of is not damage
		sound, v.Verdict = report.Look, v.Verdict+", with "+ui.Plural(int64(n), "warning")
	}
	v.Soundness = map[report.Soundness]string{report.Sound: "good", report.Look: "look", report.NotSound: "bad", report.NotJudged: "bad"}[sound]
	v.Facts = facts(p)
	v.Findings, v.MoreFindings = notes(p)
	v.Maps = treemaps(x)
	v.Operators, v.MoreOperators = operatorRows(x)
	v.Unions, v.MoreUnions = unions(x)
	v.Groups, v.MoreGroups = groupMaps(x.KeyGroups())
	v.Offsets = newOffsets(p.Offsets)
	v.Schema = newSchema(p.Schema)
	v.Trend = newTrend(p.Trend)
	return v
}

// facts are the numbers at the top.
func facts(p *Page) []fact {
	x := p.Inspect
	all := []fact{
		{"State", ui.Bytes(x.Bytes.Total)},
		{"Operators", ui.Count(int64(x.OperatorCount))},
		{"Subtasks", ui.Count(int64(x.SubtaskCount))},
		{"Files", ui.Count(int64(x.FileCount))},
		{"Inline", ui.Bytes(x.Bytes.Inline)},
	}
	if x.Bytes.SharedFiles > 0 {
		all = append(all, fact{"In shared files", ui.Bytes(x.Bytes.SharedFiles)})
	}
	if n := len(x.MissingFiles); n > 0 {
		all = append(all, fact{"Missing files", ui.Count(int64(n))})
	}
	all = append(all, fact{"Description", ui.Bytes(x.Size)})
	if p.Read {
		all = append(all, fact{"Checked", "every byte"})
	} else {
		all = append(all, fact{"Checked", "files and headers"})
	}
	return all
}

// longest is the length of a name on the page; of a longer one the middle is left out.
const longest = 90

// name returns a name from a snapshot as the page shows it.
func name(s string) string {
	s = ui.Quote(s)
	if r := []rune(s); len(r) > longest {
		return string(r[:longest*2/3]) + "…" + string(r[len(r)-longest/3:])
	}
	return s
}

// sentence returns a text from a report as the page shows it.
func sentence(s string) string { return cut(s, 600) }

// cut returns the first letters of a text.
func cut(s string, most int) string {
	s = ui.Printable(s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// more says how many of something are left out; "" for none.
func more(n int, noun, command string) string {
	if n <= 0 {
		return ""
	}
	return "… and " + ui.Plural(int64(n), "more "+noun) + "; all of them:  " + command
}
