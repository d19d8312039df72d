package report

import (
	"cmp"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/savepoint-tools/spt/internal/ui"
)

// CatStats is the answer of cat --stats.
type CatStats []CatStat

// CatStat is the elements of one state in numbers.
type CatStat struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	State    string `json:"state"`
	Kind     string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw,enum=value,enum=map,enum=reducing,enum=aggregating,enum=folding,enum=timers"`
	Subtasks int    `json:"subtasks" jsonschema:"description=picked subtasks that have an element"`
	Elements int64  `json:"elements" jsonschema:"description=or entries of keyed state; of broadcast state replicas of its map"`
	Distinct int64  `json:"distinct" jsonschema:"description=different ones, by their bytes; in keyed state different values, of timers different keys"`
	Bytes    int64  `json:"bytes" jsonschema:"description=of the elements, decompressed; inspect shows what they take as stored"`
	Min      int64  `json:"min_bytes" jsonschema:"description=of the smallest element; 0 if there is none"`
	Max      int64  `json:"max_bytes" jsonschema:"description=of the largest element"`
	// Sizes is from the smallest to the largest size that occurs.
	Sizes []CatSize `json:"sizes,omitempty" jsonschema:"description=how many elements have about a size, with empty ranges between others"`

	sizes [65]int64 // elements by the number of bits of their size
	last  int32     // subtask
}

// CatSize is how many elements have a size within a power of two.
type CatSize struct {
	Most     int64 `json:"most_bytes" jsonschema:"description=the largest size of a range: 0, 1, 3, 7, 15 and so on"`
	Elements int64 `json:"elements"`
}

// NewCatStat returns the numbers of a state without elements.
func NewCatStat(st *CatState) CatStat {
	return CatStat{Operator: st.Operator, ID: st.ID, State: st.Name, Kind: st.Kind}
}

// Add adds an element of n bytes. Elements come by subtask.
func (s *CatStat) Add(subtask int32, n int64) {
	if s.Elements == 0 || n < s.Min {
		s.Min = n
	}
	if s.Elements == 0 || subtask != s.last {
		s.last = subtask
		s.Subtasks++
	}
	s.Max = max(s.Max, n)
	s.Elements++
	s.Bytes += n
	s.sizes[bits.Len64(uint64(n))]++
}

// Finish sets Sizes, after the last element.
func (s *CatStat) Finish() {
	if s.Elements == 0 {
		return
	}
	for i := bits.Len64(uint64(s.Min)); i <= bits.Len64(uint64(s.Max)); i++ {
		s.Sizes = append(s.Sizes, CatSize{1<<i - 1, s.sizes[i]})
	}
}

// histogram draws Sizes; "" if all are about the same.
func (s *CatStat) histogram() string {
	if len(s.Sizes) < 2 {
		return ""
	}
	counts := make([]int64, len(s.Sizes))
	for i, size := range s.Sizes {
		counts[i] = size.Elements
	}
	return ui.Sparkline(counts)
}

// Sort puts the largest first.
func (all CatStats) Sort() {
	slices.SortStableFunc(all, func(a, b CatStat) int { return cmp.Compare(b.Bytes, a.Bytes) })
}

// Lines implements [Lines].
func (all CatStats) Lines() iter.Seq[any] { return each(all) }

// Header implements [Rows].
func (all CatStats) Header() []string {
	return []string{"operator", "id", "state", "kind", "subtasks", "elements", "distinct", "bytes", "min_bytes", "max_bytes"}
}

// Rows implements [Rows].
func (all CatStats) Rows() iter.Seq[[]string] {
	return rows(all, func(s *CatStat) []string {
		return []string{s.Operator, s.ID, s.State, s.Kind, fmt.Sprint(s.Subtasks), fmt.Sprint(s.Elements), fmt.Sprint(s.Distinct), fmt.Sprint(s.Bytes), fmt.Sprint(s.Min), fmt.Sprint(s.Max)}
	})
}

// Document implements [Report].
func (all CatStats) Document() *ui.Document {
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{Header: "KIND", Drop: 1},
		ui.Column{Header: "ELEMENTS", Align: ui.Right}, ui.Column{Header: "DISTINCT", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right}, ui.Column{Header: "SMALLEST", Align: ui.Right, Drop: 3}, ui.Column{Header: "SIZES", Drop: 4},
		ui.Column{Header: "LARGEST", Align: ui.Right, Drop: 2},
	)
	for _, s := range all {
		smallest, largest := "", ""
		if s.Elements > 0 {
			smallest, largest = ui.Bytes(s.Min), ui.Bytes(s.Max)
		}
		t.Row(ui.Quote(s.Operator)+"/"+ui.Quote(s.State), s.Kind, ui.Count(s.Elements), ui.Count(s.Distinct), ui.Bytes(s.Bytes), smallest, s.histogram(), largest)
	}
	var d ui.Document
	d.Add(t)
	return &d
}
