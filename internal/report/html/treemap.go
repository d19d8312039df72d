package html

import (
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/internal/picture"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

// treemap is a treemap of bytes: tiles, some with tiles in them.
type treemap struct {
	ID, Title string
	About     string // for readers that do not see it
	Height    int    // in pixels
	Tiles     []tile
	Legend    []legend
	Largest   []largest // the same in words
}

// tile is a rectangle, in percent of what it is in.
type tile struct {
	picture.Rect
	Label, Size string
	Class       string
	Tiles       []tile

	bytes int64
}

// The height of a map, and of the name of a tile that has others in it, in pixels.
const (
	mapHeight  = 420
	headHeight = 18
)

// Inner returns the height for the tiles in a tile of a map, in pixels.
func (t tile) Inner() string { return fmt.Sprintf("%.1f", t.height()-headHeight) }

func (t tile) height() float64 { return t.H / 100 * mapHeight }

// Percent returns a coordinate with two decimals.
func (t tile) Percent(x float64) string { return fmt.Sprintf("%.2f%%", x) }

type legend struct{ Class, Name string }

type largest struct{ Name, Size, Share string }

// Where tiles end. What is left is one tile.
const (
	maxOuter   = 40
	maxInner   = 12
	maxLargest = 20
)

// whole is a frame in percent. Its sides are compared as if it were square: the page is
// not always of one shape.
var whole = picture.Rect{W: 100, H: 100}

// The kinds of state and their classes.
var kinds = []struct{ class, name string }{
	{"keyed", "keyed"}, {"list", "list"}, {"union", "union"}, {"broadcast", "broadcast"}, {"flight", "in-flight data"},
	{"coordinator", "coordinator"}, {"serializers", "serializers"}, {"other", "other"},
}

func kindClass(kind string) string {
	if kind == "raw keyed" {
		return "keyed"
	}
	for _, k := range kinds {
		if k.name == kind {
			return k.class
		}
	}
	return "other"
}

func treemaps(x *report.Inspect) []treemap {
	if x.Bytes.Total == 0 {
		return nil
	}
	all := []treemap{byState(x), bySubtask(x)}
	if m := byFile(x); len(m.Tiles) > 0 {
		all = append(all, m)
	}
	return all
}

// arrange positions tiles, the largest first; those after most become one.
func arrange(tiles []tile, most int, noun string) []tile {
	tiles = slices.DeleteFunc(tiles, func(t tile) bool { return t.bytes <= 0 })
	slices.SortStableFunc(tiles, func(a, b tile) int { return int(min(max(b.bytes-a.bytes, -1), 1)) })
	if len(tiles) > most+1 {
		rest := tile{Label: ui.Plural(int64(len(tiles)-most), "more "+noun), Class: "rest"}
		for _, t := range tiles[most:] {
			rest.bytes += t.bytes
		}
		rest.Size = ui.Bytes(rest.bytes)
		tiles = append(tiles[:most:most], rest)
	}
	values := make([]int64, len(tiles))
	for i, t := range tiles {
		values[i] = t.bytes
	}
	for i, r := range picture.Treemap(values, whole) {
		tiles[i].Rect = r
	}
	return tiles
}

func newTile(label, class string, bytes int64) tile {
	return tile{Label: label, Class: class, Size: ui.Bytes(bytes), bytes: bytes}
}

// finish adds the list of the largest, and takes tiles out of those that are too low for
// them.
func (m *treemap) finish(total int64, rows []largest) {
	m.Height, m.Largest = mapHeight, rows
	for i := range m.Tiles {
		if m.Tiles[i].height() < 2*headHeight {
			m.Tiles[i].Tiles = nil
		}
	}
	m.About = fmt.Sprintf("Treemap of %s by %s; the largest are in the table after it.", ui.Bytes(total), m.Title)
}

// byState is a treemap of operators, and in them of their states.
func byState(x *report.Inspect) treemap {
	m := treemap{ID: "states", Title: "operator and state"}
	seen := map[string]bool{}
	var rows []largest
	var tiles []tile
	for i := range x.Operators {
		op := &x.Operators[i]
		t := newTile(name(op.Label()), "operator", op.Bytes.Total)
		if i < maxOuter { // they are sorted
			for _, st := range op.States {
				class := kindClass(st.Kind)
				seen[class] = seen[class] || st.Bytes > 0
				t.Tiles = append(t.Tiles, newTile(stateName(&st), class, st.Bytes))
			}
			t.Tiles = arrange(t.Tiles, maxInner, "state")
		}
		tiles = append(tiles, t)
	}
	for _, r := range x.Rows(report.ByState) {
		if len(rows) < maxLargest && r.Bytes > 0 {
			label := "(" + r.Kind + ")"
			if r.State != "" {
				label = name(r.State)
			}
			rows = append(rows, largest{name(r.Operator) + "/" + label, ui.Bytes(r.Bytes), ui.Percent(r.Bytes, x.Bytes.Total)})
		}
	}
	m.Tiles = arrange(tiles, maxOuter, "operator")
	for _, k := range kinds {
		if seen[k.class] {
			m.Legend = append(m.Legend, legend{k.class, k.name})
		}
	}
	m.finish(x.Bytes.Total, rows)
	return m
}

// bySubtask is a treemap of operators, and in them of their subtasks.
func bySubtask(x *report.Inspect) treemap {
	m := treemap{ID: "subtasks", Title: "operator and subtask"}
	inner := map[string][]tile{}
	var rows []largest
	for _, r := range x.Rows(report.BySubtask) {
		if r.Bytes == 0 {
			continue
		}
		label := fmt.Sprintf("%d", *r.Subtask)
		inner[r.ID] = append(inner[r.ID], newTile(label, "subtask", r.Bytes))
		if len(rows) < maxLargest {
			rows = append(rows, largest{name(r.Operator) + ", subtask " + label, ui.Bytes(r.Bytes), ui.Percent(r.Bytes, x.Bytes.Total)})
		}
	}
	var tiles []tile
	for i := range x.Operators {
		op := &x.Operators[i]
		t := newTile(name(op.Label()), "operator", 0)
		for _, in := range inner[op.ID] {
			t.bytes += in.bytes
		}
		t.Size = ui.Bytes(t.bytes)
		t.Tiles = inner[op.ID]
		tiles = append(tiles, t)
	}
	m.Tiles = arrange(tiles, maxOuter/2, "operator")
	for i := range m.Tiles {
		m.Tiles[i].Tiles = arrange(m.Tiles[i].Tiles, 2*maxInner, "subtask")
	}
	m.finish(x.Bytes.Total, rows)
	return m
}

// byFile is a treemap of files.
func byFile(x *report.Inspect) treemap {
	m := treemap{ID: "files", Title: "file"}
	names := []legend{{"own", "of this snapshot alone"}, {"merged", "of several handles"}, {"shared", "may be used by other snapshots"}, {"missing", "cannot be found"}}
	seen := map[string]bool{}
	var rows []largest
	var tiles []tile
	total := int64(0)
	for _, r := range x.Rows(report.ByFile) {
		class := r.Place
		if r.Missing {
			class = "missing"
		}
		seen[class] = seen[class] || r.Bytes > 0
		total += r.Bytes
		tiles = append(tiles, newTile(name(r.File), class, r.Bytes))
		if len(rows) < maxLargest {
			rows = append(rows, largest{name(r.File), ui.Bytes(r.Bytes), ui.Percent(r.Bytes, x.Bytes.Total)})
		}
	}
	m.Tiles = arrange(tiles, 3*maxOuter, "file")
	for _, l := range names {
		if seen[l.Class] {
			m.Legend = append(m.Legend, l)
		}
	}
	m.finish(total, rows)
	return m
}

func stateName(st *report.InspectState) string {
	if st.Name == "" {
		return "(" + st.Kind + ")"
	}
	return name(st.Name)
}

// operatorRow is a row of the table of operators, or of their states.
type operatorRow struct {
	State                                             bool
	Name, Kind, Type, Parallelism, Count, Size, Share string
}

const maxRows = 400 // of operators and states

func operatorRows(x *report.Inspect) (all []operatorRow, left string) {
	for i := range x.Operators {
		op := &x.Operators[i]
		if len(all) >= maxRows {
			return all, more(len(x.Operators)-i, "operator", "spt inspect "+shell.Quote(x.Path))
		}
		all = append(all, operatorRow{Name: name(op.Label()), Parallelism: fmt.Sprintf("%d / %d", op.Parallelism, op.MaxParallelism), Size: ui.Bytes(op.Bytes.Total), Share: ui.Percent(op.Bytes.Total, x.Bytes.Total)})
		for k := range op.States {
			st := &op.States[k]
			if k == 2*maxInner {
				all = append(all, operatorRow{State: true, Name: "… and " + ui.Plural(int64(len(op.States)-k), "more state")})
				break
			}
			row := operatorRow{State: true, Name: stateName(st), Kind: st.Kind, Type: cut(st.Type, maxType), Size: ui.Bytes(st.Bytes)}
			switch {
			case st.KeyGroups > 0:
				row.Count = ui.Plural(st.KeyGroups, "key group")
			case st.Elements != nil:
				row.Count = ui.Count(*st.Elements)
			}
			all = append(all, row)
			for j, in := range st.States {
				if j == maxInner {
					all = append(all, operatorRow{State: true, Name: "… and " + ui.Plural(int64(len(st.States)-j), "more keyed state")})
					break
				}
				row := operatorRow{State: true, Name: name(in.Name), Kind: in.Kind, Type: cut(in.Type, maxType)}
				if in.Count != nil {
					row.Count, row.Size = ui.Count(in.Count.Entries), ui.Bytes(in.Count.Bytes)
				}
				all = append(all, row)
			}
		}
	}
	return all, ""
}
