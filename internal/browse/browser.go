package browse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
)

const (
	// chunk is how many rows are read at once.
	chunk = 256
	// held is how many rows of a page are kept.
	held = 4 * chunk
)

// Browser is the state of a browser. Its methods must be called from one goroutine.
type Browser struct {
	Width, Height int // of the terminal
	Color         bool
	// Read returns how many bytes were read so far, for the progress; it may be nil.
	Read func() int64
	// Explain words an error; nil uses its text.
	Explain func(error) string

	views   []*view
	asking  *question
	wanted  *request // work that a key asked for
	busy    string   // what is being done; "": nothing
	since   int64    // Read when it began
	message string
	bad     bool // message is a problem
	found   string
	ahead   []typed // keys that wait for work
	quit    bool
}

// typed is a key that was pressed.
type typed struct{ key, text string }

// request is work that is not about the rows of a page.
type request struct {
	what string
	open func(ctx context.Context) (*Page, error)
}

// question is a line that is being typed.
type question struct {
	label, text string
	answer      func(text string)
}

// view is a page with the rows that were read of it.
type view struct {
	page        *Page
	rows        []Row
	first       int64 // number of rows[0]
	end         bool  // the last of rows is the last of the page
	problem     string
	top, cursor int64
	stopped     bool // reading was cancelled: rows are read again after a key
	toEnd       bool // the cursor goes to the last row
	search      *search
	types       Text
	noTypes     string // why types could not be read
	skipTypes   bool
}

type search struct {
	text string
	next int64 // row
	from int64 // where the cursor was
}

// New returns a browser that shows a page.
func New(first *Page) *Browser {
	return &Browser{Width: 80, Height: 24, views: []*view{{page: first}}}
}

// Done reports whether the user wants to leave.
func (b *Browser) Done() bool { return b.quit }

// Busy reports whether work runs.
func (b *Browser) Busy() bool { return b.busy != "" }

func (b *Browser) view() *view { return b.views[len(b.views)-1] }

// Close releases what the pages hold. No work may run.
func (b *Browser) Close() {
	for _, v := range b.views {
		if v.page.Close != nil {
			v.page.Close()
		}
	}
}

// Next returns the work to run now, nil if nothing is to be done or work runs already.
func (b *Browser) Next() Work {
	if b.busy != "" || b.quit {
		return nil
	}
	for {
		w := b.work()
		if w != nil || len(b.ahead) == 0 {
			return w
		}
		k := b.ahead[0]
		b.ahead = b.ahead[1:]
		b.Press(k.key, k.text)
		if b.quit {
			return nil
		}
	}
}

// work returns the work that the page on the screen needs.
func (b *Browser) work() Work {
	v := b.view()
	switch r := b.wanted; {
	case r != nil:
		b.wanted = nil
		return b.begin(r.what, func(ctx context.Context) func() {
			p, err := r.open(ctx)
			return func() {
				if err != nil {
					b.complain(err)
				} else if p != nil {
					b.message, b.bad = p.Note, false
					b.views = append(b.views, &view{page: p})
				}
			}
		})
	case v.stopped || v.page.Rows == nil:
		return nil
	}
	if first, ok := b.needed(v); ok {
		what := "reading"
		if v.search != nil {
			what = "searching"
		}
		return b.begin(what, func(ctx context.Context) func() {
			rows, end, err := v.page.Rows(ctx, first, chunk)
			return func() { b.add(v, first, rows, end, err) }
		})
	}
	if v.page.Types != nil && v.types == nil && !v.skipTypes && b.panel() > 0 {
		return b.begin("reading types", func(ctx context.Context) func() {
			t, err := v.page.Types(ctx)
			return func() {
				v.types, v.skipTypes = t, true
				if err != nil {
					v.noTypes = b.explain(err)
				}
			}
		})
	}
	return nil
}

// begin notes that work runs until its result is applied.
func (b *Browser) begin(what string, f func(ctx context.Context) func()) Work {
	b.busy, b.since = what, b.read()
	return func(ctx context.Context) func() {
		apply := f(ctx)
		return func() {
			b.busy = ""
			apply()
		}
	}
}

func (b *Browser) read() int64 {
	if b.Read == nil {
		return 0
	}
	return b.Read()
}

// needed returns the first row to read, if the screen or a search needs rows that are
// not held.
func (b *Browser) needed(v *view) (int64, bool) {
	last := v.first + int64(len(v.rows)) // the row after
	switch {
	case v.search != nil:
		if v.search.next < v.first || v.search.next > last {
			return v.search.next, true
		}
		return last, true // scan has looked at all that is held
	case v.toEnd && v.page.Total > 0 && last < v.page.Total && v.page.Total-last > chunk:
		return v.page.Total - chunk, true
	case v.toEnd && !v.end:
		return last, true
	case v.top < v.first:
		return max(0, v.top-chunk/2), true
	case v.top > last:
		return v.top, true
	case v.top+int64(b.listHeight()) > last && !v.end:
		return last, true
	}
	return 0, false
}

// add takes rows that were read.
func (b *Browser) add(v *view, first int64, rows []Row, end bool, err error) {
	if errors.Is(err, context.Canceled) {
		b.cancelled(v)
		return
	}
	if first != v.first+int64(len(v.rows)) {
		v.rows, v.first = nil, first
	}
	v.rows = append(v.rows, rows...)
	end = end || len(rows) == 0 // a page that returns nothing would be asked again
	if drop := len(v.rows) - held; drop > 0 {
		v.rows = slices.Delete(v.rows, 0, drop)
		v.first += int64(drop)
	}
	v.end, v.problem = end || err != nil, ""
	if err != nil {
		v.problem = b.explain(err)
	}
	if v.search != nil {
		b.scan(v)
	}
	if v.toEnd && v.end {
		v.toEnd = false
		v.cursor = v.first + int64(len(v.rows)) - 1
	}
	b.clamp(v)
}

func (b *Browser) cancelled(v *view) {
	b.message, b.bad = "cancelled", false
	if v.search != nil {
		v.cursor, v.search = v.search.from, nil
	}
	v.stopped, v.toEnd = true, false
}

// scan looks for the text of a search in the rows that are held.
func (b *Browser) scan(v *view) {
	s := v.search
	for i := max(s.next, v.first); i < v.first+int64(len(v.rows)); i++ {
		if v.rows[i-v.first].has(s.text) {
			v.cursor, v.search = i, nil
			b.message = ""
			b.clamp(v)
			return
		}
	}
	s.next = v.first + int64(len(v.rows))
	if v.end && v.first == 0 { // from the first row on
		for i := range min(s.from+1, int64(len(v.rows))) {
			if v.rows[i].has(s.text) {
				v.cursor, v.search = i, nil
				b.clamp(v)
				return
			}
		}
	}
	if v.end {
		v.cursor, v.search = s.from, nil
		b.message, b.bad = fmt.Sprintf("not found below row %s: %s", ui.Count(s.from+1), s.text), true
		b.clamp(v)
	}
}

// has reports whether a row contains a text, in lower case.
func (r *Row) has(text string) bool {
	return strings.Contains(strings.ToLower(strings.Join(append([]string{r.Text, r.Problem}, r.Cells...), "\x00")), text)
}

// clamp moves the cursor into the page and the page under the cursor.
func (b *Browser) clamp(v *view) {
	if v.page.Total >= 0 && v.page.Rows != nil {
		v.cursor = min(v.cursor, v.page.Total-1)
	}
	if v.end {
		v.cursor = min(v.cursor, v.first+int64(len(v.rows))-1)
	}
	v.cursor = max(v.cursor, 0)
	h := int64(b.listHeight())
	v.top = min(max(v.top, v.cursor-h+1), v.cursor)
	if v.page.Text != nil {
		v.top = v.cursor
	}
}

func (b *Browser) explain(err error) string {
	if b.Explain != nil {
		return b.Explain(err)
	}
	return err.Error()
}

func (b *Browser) complain(err error) {
	b.message, b.bad = b.explain(err), true
	if errors.Is(err, context.Canceled) {
		b.message, b.bad = "cancelled", false
	}
}
