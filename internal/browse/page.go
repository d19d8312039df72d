// Package browse is a browser for the levels of a snapshot, without a terminal: a
// [Browser] turns keys into pages, rows and texts, and returns the reads that it needs
// as values that its caller runs. Package screen draws it.
package browse

import "context"

// Page is one level of a snapshot: a list of rows, or a text. Functions that read stop
// when their context ends. Those that a page does not support are nil. At most one of
// them is called at a time.
type Page struct {
	Title   string   // one step of the path
	Columns []string // headers of the name and of the cells of rows
	Total   int64    // number of rows; -1 if only reading tells
	Command string   // command line that shows the same
	Note    string   // shown once, when the page opens

	// Rows returns up to n rows, from number first on. It may return fewer, and returns
	// the rows before an error with the error. end is set if no row follows.
	Rows func(ctx context.Context, first int64, n int) (rows []Row, end bool, err error)
	// Open returns the page of a row.
	Open func(ctx context.Context, row int64) (*Page, error)
	// Types returns the types of the states on the page.
	Types func(ctx context.Context) (Text, error)
	// Lookup returns the entries of a key, in JSON.
	Lookup func(ctx context.Context, key string) (*Page, error)
	// Compare compares what the page shows with another snapshot.
	Compare func(ctx context.Context, location string) (*Page, error)
	// Text is shown instead of rows.
	Text Text
	// Close releases what reading holds open.
	Close func()
}

// Text returns lines of at most width columns, safe to print, with tones if color is set.
type Text func(width int, color bool) []string

// Row is one line of a list.
type Row struct {
	Text    string   // as in the snapshot: it is escaped when it is shown
	Cells   []string // one for each further column
	Bytes   int64    // length of the bar, relative to the other rows; -1: no bar
	Opens   bool     // Open has a page for it
	Problem string   // why it cannot be read, or not completely
}

// Work is a read. It runs outside of the browser, and returns what to do with its
// result, which belongs to the goroutine of the browser.
type Work func(ctx context.Context) (done func())
