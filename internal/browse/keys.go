package browse

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/internal/ui"
)

// binding is a key: how it is called in the help, and what it does.
type binding struct {
	keys []string
	name string // in the help and the last line of the screen; "": listed with another
	help string
	hint string // in the last line of the screen; "": only in the help
	do   func(b *Browser, v *view)
}

// bindings returns the keys, in the order of the help.
func bindings() []binding {
	return []binding{
		{[]string{"enter", "right"}, "Enter, →", "open the row: states, subtasks, elements and entries, one value", "Enter open", (*Browser).open},
		{[]string{"esc", "left", "backspace"}, "Esc, ←", "back; cancel what is being read; on the first page, quit", "Esc back", (*Browser).back},
		{[]string{"?", "f1"}, "?", "this help", "? help", (*Browser).showHelp},
		{[]string{"q", "ctrl+c"}, "q", "quit", "q quit", func(b *Browser, _ *view) { b.quit = true }},
		{[]string{"up", "k"}, "↑, k", "up", "", func(b *Browser, v *view) { b.move(v, v.cursor-1) }},
		{[]string{"down", "j"}, "↓, j", "down", "", func(b *Browser, v *view) { b.move(v, v.cursor+1) }},
		{[]string{"pgup", "ctrl+b"}, "PgUp", "one screen up", "", func(b *Browser, v *view) { b.move(v, v.cursor-int64(b.listHeight())) }},
		{[]string{"pgdown", "ctrl+f", "space"}, "PgDn, Space", "one screen down", "", func(b *Browser, v *view) { b.move(v, v.cursor+int64(b.listHeight())) }},
		{[]string{"home", "g"}, "Home, g", "first row", "", func(b *Browser, v *view) { b.move(v, 0) }},
		{[]string{"end", "G"}, "End, G", "last row: entries of keyed state are read up to it", "", (*Browser).last},
		{[]string{"/"}, "/", "search below for a text in the rows; Enter alone repeats the search", "/ search", (*Browser).askSearch},
		{[]string{"n"}, "n", "search on", "", func(b *Browser, v *view) { b.searchFor(v, b.found) }},
		{[]string{"f"}, "f", "find a key of keyed state, in JSON, such as \"user-17\"", "f find key", (*Browser).askKey},
		{[]string{"d"}, "d", "compare with another snapshot; the one with the lower checkpoint id is the older", "d compare", (*Browser).askCompare},
		{[]string{"s"}, "s", "types of the states (at 100 columns and more they are next to the rows)", "s types", (*Browser).showTypes},
		{[]string{"y"}, "y", "the command of spt that shows the same", "y command", (*Browser).showCommand},
	}
}

// maxAhead is how many keys wait for work.
const maxAhead = 64

// Press handles a key, by its name ("enter", "ctrl+c", "/"), and reports whether running
// work must be cancelled.
func (b *Browser) Press(key, text string) (cancel bool) {
	if key == "alt+esc" { // Esc twice, which arrived at once
		cancel = b.Press("esc", "")
		return b.Press("esc", "") || cancel
	}
	if b.asking != nil && key != "ctrl+c" {
		b.typed(key, text)
		return false
	}
	if b.busy != "" { // other keys wait
		switch key {
		case "esc", "left":
			b.ahead = nil
			return true
		case "q", "ctrl+c":
			b.quit = true
			return true
		}
		if len(b.ahead) < maxAhead {
			b.ahead = append(b.ahead, typed{key, text})
		}
		return false
	}
	for _, k := range bindings() {
		for _, name := range k.keys {
			if name == key {
				b.message = ""
				v := b.view()
				v.stopped = false
				k.do(b, v)
				return false
			}
		}
	}
	return false
}

// Paste adds text to the line that is being typed.
func (b *Browser) Paste(text string) {
	if b.asking != nil {
		b.asking.text += text
	}
}

// Resize sets the size of the terminal.
func (b *Browser) Resize(width, height int) {
	b.Width, b.Height = width, height
	for _, v := range b.views {
		b.clamp(v)
	}
}

// typed handles a key of the line that is being typed.
func (b *Browser) typed(key, text string) {
	q := b.asking
	switch key {
	case "esc":
		b.asking = nil
	case "enter":
		b.asking = nil
		q.answer(q.text)
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(q.text)
		q.text = q.text[:len(q.text)-n]
	case "ctrl+u":
		q.text = ""
	default:
		q.text += text
	}
}

func (b *Browser) move(v *view, to int64) {
	v.cursor = max(to, 0)
	if v.page.Text != nil {
		v.cursor = min(v.cursor, int64(max(len(v.page.Text(b.Width, b.Color))-b.listHeight(), 0)))
	}
	b.clamp(v)
}

func (b *Browser) last(v *view) {
	switch {
	case v.page.Text != nil:
		b.move(v, int64(len(v.page.Text(b.Width, b.Color))))
	case v.end:
		b.move(v, v.first+int64(len(v.rows))-1)
	default:
		v.toEnd = true
	}
}

// row returns the row under the cursor, nil if it is not there.
func (v *view) row() *Row {
	if i := v.cursor - v.first; i >= 0 && i < int64(len(v.rows)) {
		return &v.rows[i]
	}
	return nil
}

func (b *Browser) open(v *view) {
	r := v.row()
	if r == nil || v.page.Text != nil {
		return
	}
	if !r.Opens || v.page.Open == nil {
		b.message, b.bad = r.Problem, true
		return
	}
	row := v.cursor
	b.wanted = &request{"reading", func(ctx context.Context) (*Page, error) { return v.page.Open(ctx, row) }}
}

func (b *Browser) back(v *view) {
	if len(b.views) == 1 {
		b.quit = true
		return
	}
	if v.page.Close != nil {
		v.page.Close()
	}
	b.views = b.views[:len(b.views)-1]
	b.clamp(b.view()) // the terminal may have another size
}

func (b *Browser) ask(label string, answer func(text string)) {
	b.asking = &question{label: label, answer: answer}
}

func (b *Browser) askSearch(v *view) {
	if v.page.Rows == nil {
		b.message, b.bad = "a text cannot be searched", true
		return
	}
	b.ask("search: ", func(text string) {
		if text != "" {
			b.found = strings.ToLower(text)
		}
		b.searchFor(v, b.found)
	})
}

func (b *Browser) searchFor(v *view, text string) {
	if text == "" || v.page.Rows == nil {
		return
	}
	v.search = &search{text: text, next: v.cursor + 1, from: v.cursor}
	if last := v.first + int64(len(v.rows)); v.search.next <= last {
		b.scan(v)
	}
}

func (b *Browser) askKey(v *view) {
	if v.page.Lookup == nil {
		b.message, b.bad = "only keyed state has keys: open an operator that has keyed state", true
		return
	}
	b.ask("key (JSON): ", func(text string) {
		if text = strings.TrimSpace(text); text != "" {
			b.wanted = &request{"searching the key", func(ctx context.Context) (*Page, error) { return v.page.Lookup(ctx, text) }}
		}
	})
}

func (b *Browser) askCompare(v *view) {
	if v.page.Compare == nil {
		b.message, b.bad = "snapshots, operators and states are compared, not single values", true
		return
	}
	b.ask("compare with: ", func(text string) {
		if text = strings.TrimSpace(text); text != "" {
			b.wanted = &request{"comparing", func(ctx context.Context) (*Page, error) { return v.page.Compare(ctx, text) }}
		}
	})
}

func (b *Browser) showTypes(v *view) {
	switch {
	case v.page.Types == nil:
		b.message, b.bad = "this page has no types: open an operator", true
	case v.types != nil:
		b.views = append(b.views, &view{page: &Page{Title: "types", Text: v.types, Command: v.page.Command}})
	default:
		b.wanted = &request{"reading types", func(ctx context.Context) (*Page, error) {
			t, err := v.page.Types(ctx)
			return &Page{Title: "types", Text: t, Command: v.page.Command}, err
		}}
	}
}

func (b *Browser) showCommand(v *view) {
	if v.page.Command == "" {
		return
	}
	b.views = append(b.views, &view{page: &Page{Title: "command", Text: Wrapped(v.page.Command)}})
}

func (b *Browser) showHelp(*view) {
	t := ui.NewTable(ui.Column{}, ui.Column{Shrink: 1, Wrap: true})
	for _, k := range bindings() {
		t.Row(k.name, k.help)
	}
	var d ui.Document
	d.Add(t)
	b.views = append(b.views, &view{page: &Page{Title: "help", Text: Rendered(&d)}})
}
