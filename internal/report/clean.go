package report

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Cleaning is the answer of clean. Its JSON is the list of leftovers.
type Cleaning struct {
	Leftovers []Leftover
	DryRun    bool

	now time.Time
}

// Leftover is one leftover, and what became of it.
type Leftover struct {
	Path   string     `json:"path"`
	Result string     `json:"result" jsonschema:"enum=removed,enum=would_remove,enum=kept,enum=failed"`
	Reason string     `json:"reason,omitempty" jsonschema:"description=why it was kept or could not be removed"`
	Time   *time.Time `json:"time,omitempty" jsonschema:"description=when the newest file in it was last written"`
	Files  int        `json:"files"`
	Bytes  int64      `json:"bytes"`
	Upload string     `json:"upload,omitempty" jsonschema:"description=id of an unfinished upload of this object"`
	// Displaced holds the only copy of a snapshot.
	Displaced string `json:"displaced,omitempty" jsonschema:"description=the name of which this holds the snapshot: nothing is there and it should be renamed back"`
}

// The values of [Leftover.Result].
const (
	leftoverRemoved     = "removed"
	leftoverWouldRemove = "would_remove"
	leftoverKept        = "kept"
	leftoverFailed      = "failed"
)

// NewCleaning returns a report of leftovers, as they are at a time.
func NewCleaning(dryRun bool, now time.Time) *Cleaning {
	return &Cleaning{Leftovers: []Leftover{}, DryRun: dryRun, now: now}
}

// KeepReason returns why a leftover is not removed; "" if it is.
func KeepReason(l ability.Leftover) string {
	switch {
	case l.Foreign != "":
		return l.Foreign
	case l.InUse:
		return "a run of spt uses it"
	case l.Displaced != "":
		return fmt.Sprintf("%s is missing and this is its snapshot; rename it back:  mv %s %s", ui.Quote(l.Displaced), shell.Quote(l.Name), shell.Quote(l.Displaced))
	}
	return ""
}

// Add adds a leftover that was kept for a reason, or was to be removed, which may have
// failed; hint is what to do about that.
func (c *Cleaning) Add(l ability.Leftover, kept string, failed error, hint string) {
	row := Leftover{Path: l.Name, Result: leftoverRemoved, Reason: kept, Files: l.Files, Bytes: l.Bytes, Upload: l.Upload, Displaced: l.Displaced}
	if !l.ModTime.IsZero() {
		row.Time = new(l.ModTime.UTC())
	}
	switch {
	case failed != nil:
		row.Result, row.Reason = leftoverFailed, failed.Error()
		if hint != "" {
			row.Reason += ": " + hint
		}
	case kept != "":
		row.Result = leftoverKept
	case c.DryRun:
		row.Result = leftoverWouldRemove
	}
	c.Leftovers = append(c.Leftovers, row)
}

// JSON implements [JSON].
func (c *Cleaning) JSON() any { return c.Leftovers }

// Lines implements [Lines].
func (c *Cleaning) Lines() iter.Seq[any] { return each(c.Leftovers) }

// Header implements [Rows].
func (c *Cleaning) Header() []string {
	return []string{"path", "result", "time", "files", "bytes", "displaced", "reason", "upload"}
}

// Rows implements [Rows].
func (c *Cleaning) Rows() iter.Seq[[]string] {
	return rows(c.Leftovers, func(l *Leftover) []string {
		return []string{l.Path, l.Result, timeText(l.Time), strconv.Itoa(l.Files), strconv.FormatInt(l.Bytes, 10), l.Displaced, l.Reason, l.Upload}
	})
}

// Document implements [Report].
func (c *Cleaning) Document() *ui.Document {
	var d ui.Document
	if len(c.Leftovers) == 0 {
		return &d
	}
	var n, bytes int64
	for i := range c.Leftovers {
		l := &c.Leftovers[i]
		var word string
		switch l.Result {
		case leftoverRemoved:
			word = "removed"
		case leftoverWouldRemove:
			word = "would remove"
		case leftoverKept:
			word = ui.Look("kept")
		case leftoverFailed:
			word = ui.Look("not removed")
		}
		if l.Result == leftoverRemoved || l.Result == leftoverWouldRemove {
			n++
			bytes += l.Bytes
		}
		text := fmt.Sprintf("%s %s: %s, %s", word, ui.Quote(l.Path), ui.Plural(int64(l.Files), "file"), ui.Bytes(l.Bytes))
		did := "last written"
		if l.Upload != "" {
			text = fmt.Sprintf("%s the unfinished upload of %s: %s", word, ui.Quote(l.Path), ui.Bytes(l.Bytes))
			did = "begun"
		}
		if l.Time != nil {
			text += ", " + did + " " + ui.Ago(*l.Time, c.now)
		}
		if l.Reason != "" {
			text += ": " + ui.PrintableLines(l.Reason)
		}
		d.Line("%s", text)
	}
	text := "removed"
	if c.DryRun {
		text = "would remove"
	}
	text = fmt.Sprintf("%s %s, %s", text, ui.Plural(n, "leftover"), ui.Bytes(bytes))
	if kept := int64(len(c.Leftovers)) - n; kept > 0 {
		text += fmt.Sprintf("; %s kept", ui.Count(kept))
	}
	d.Line("%s", text)
	if c.DryRun {
		d.Line("Nothing removed: this was a dry run.")
	}
	return &d
}
