package ui

import (
	"iter"
	"strings"

	"github.com/mattn/go-runewidth"
)

const ellipsis = "…"

// columns measures as a terminal draws today, whatever the locale: output must not depend on LANG.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// Width returns how many terminal columns s takes. Colour takes none.
func Width(s string) int {
	n := 0
	for text, mark := range segments(s) {
		if !mark {
			n += columns.StringWidth(text)
		}
	}
	return n
}

// segments cuts s into text and colour marks. Any other escape sequence is text.
func segments(s string) iter.Seq2[string, bool] {
	return func(yield func(string, bool) bool) {
		from := 0 // start of the text that was not yielded yet
		for at := 0; at < len(s); {
			n := markLen(s[at:])
			if n == 0 {
				at++
				continue
			}
			if at > from && !yield(s[from:at], false) || !yield(s[at:at+n], true) {
				return
			}
			at += n
			from = at
		}
		if from < len(s) {
			yield(s[from:], false)
		}
	}
}

// markLen returns the length of the tone mark that s starts with, or 0. Only what [Bad] and its siblings return is a
// mark: a name in a file that conceals text (ESC[8m) or blinks is not.
func markLen(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	const longest = 16
	end := strings.IndexByte(s[:min(len(s), longest)], 'm')
	if end < 0 {
		return 0
	}
	for code := range strings.SplitSeq(s[2:end], ";") {
		switch code {
		case "0", "22", "1", "2", "31", "32", "33": // reset, not bold or faint, bold, faint, red, green, yellow
		default:
			return 0
		}
	}
	return end + 1
}

// sanitize makes s safe to print on one line. Colour marks stay if color is set, and go if not.
func sanitize(s string, color bool) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	for part, mark := range segments(s) {
		switch {
		case !mark:
			b.WriteString(Printable(part))
		case color:
			b.WriteString(part)
		}
	}
	return b.String()
}

// Cut says where a text that is too long is cut.
type Cut uint8

// Where a text can be cut.
const (
	CutEnd    Cut = iota // "committable-s…"
	CutMiddle            // "commit…-state": for names that differ in their ends
)

// truncate returns s in at most w columns, with an ellipsis where something is missing. All colour marks stay, so
// that what was opened is closed.
func truncate(s string, w int, cut Cut) string {
	total := Width(s)
	switch {
	case total <= w:
		return s
	case w <= 0:
		return ""
	case cut == CutEnd || w < 3:
		return head(s, w-1) + ellipsis
	}
	tail := (w - 1) / 2
	return head(s, w-1-tail) + ellipsis + dropHead(s, total-tail)
}

func head(s string, w int) string {
	var b strings.Builder
	for part, mark := range segments(s) {
		if mark {
			b.WriteString(part)
			continue
		}
		kept := columns.Truncate(part, w, "")
		b.WriteString(kept)
		if w -= columns.StringWidth(kept); len(kept) < len(part) {
			w = 0 // a wide character did not fit: nothing after it may be kept instead
		}
	}
	return b.String()
}

func dropHead(s string, drop int) string {
	var b strings.Builder
	for part, mark := range segments(s) {
		if mark {
			b.WriteString(part)
			continue
		}
		w := columns.StringWidth(part)
		if drop < w {
			b.WriteString(columns.TruncateLeft(part, drop, "")) // half a wide character becomes a space
		}
		drop = max(0, drop-w)
	}
	return b.String()
}

// Fit returns s, escaped as by [Printable], in exactly w columns: cut or padded with
// blanks.
func Fit(s string, w int, cut Cut) string {
	s = truncate(Printable(s), w, cut)
	return s + strings.Repeat(" ", max(w-Width(s), 0))
}
