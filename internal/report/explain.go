package report

import (
	"iter"
	"strings"

	"github.com/savepoint-tools/spt/internal/explain"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Explanations is the answer of explain.
type Explanations struct {
	entries []Explanation
	list    bool
}

// Explanation explains a word that spt prints.
type Explanation struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind" jsonschema:"enum=finding,enum=verdict,enum=term"`
	By      string   `json:"by,omitempty" jsonschema:"description=of findings and verdicts: the commands that print it"`
	Meaning string   `json:"meaning"`
	Flink   string   `json:"flink,omitempty" jsonschema:"description=what Flink does"`
	Do      string   `json:"do,omitempty" jsonschema:"description=what to do"`
	See     []string `json:"see,omitempty" jsonschema:"description=names of other entries"`
}

// NewExplanations reports entries: as a list of names, or each with all its texts.
func NewExplanations(all []explain.Entry, list bool) *Explanations {
	x := &Explanations{entries: []Explanation{}, list: list}
	for _, e := range all {
		x.entries = append(x.entries, Explanation{e.Name, string(e.Kind), e.By, e.Meaning, e.Flink, e.Do, e.See})
	}
	return x
}

// JSON implements [JSON].
func (x *Explanations) JSON() any { return x.entries }

// Lines implements [Lines].
func (x *Explanations) Lines() iter.Seq[any] { return each(x.entries) }

// Header implements [Rows].
func (x *Explanations) Header() []string {
	return []string{"name", "kind", "by", "meaning", "flink", "do", "see"}
}

// Rows implements [Rows].
func (x *Explanations) Rows() iter.Seq[[]string] {
	return rows(x.entries, func(e *Explanation) []string {
		return []string{e.Name, e.Kind, e.By, e.Meaning, e.Flink, e.Do, strings.Join(e.See, ", ")}
	})
}

// Document implements [Report].
func (x *Explanations) Document() *ui.Document {
	var d ui.Document
	if !x.list {
		for i := range x.entries {
			if i > 0 {
				d.Blank()
			}
			x.entries[i].appendTo(&d)
		}
		return &d
	}
	for _, kind := range explain.Kinds() {
		if len(d.Blocks()) > 0 {
			d.Blank()
		}
		t := ui.NewTable(ui.Column{Header: strings.ToUpper(string(kind))}, ui.Column{Header: "MEANING", Shrink: 1, Min: 30, Wrap: true})
		for i := range x.entries {
			if e := &x.entries[i]; e.Kind == string(kind) {
				t.Row(e.Name, e.Meaning)
			}
		}
		d.Add(t)
	}
	d.Blank()
	d.Line("spt explain NAME prints what Flink does, and what to do.")
	return &d
}

func (e *Explanation) appendTo(d *ui.Document) {
	head := e.Name + " · " + e.Kind
	if e.By != "" {
		head += " of " + e.By
	}
	d.Heading("%s", head)
	d.Line("%s", e.Meaning)
	for _, part := range []struct{ title, text string }{{"Flink:  ", e.Flink}, {"To do:  ", e.Do}, {"See:  ", strings.Join(e.See, ", ")}} {
		if part.text != "" {
			d.Line("%s%s", ui.Dim(part.title), part.text)
		}
	}
}
