package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
)

// maxLine bounds a line.
const maxLine = 256 << 20

// eachLine calls f with the number and the text of each line that is not empty, until it
// returns false. The text is valid until f returns.
func eachLine(body io.Reader, flag, name string, f func(n int64, text []byte) bool) error {
	r := bufio.NewReaderSize(body, 64<<10)
	var text []byte
	for n := int64(1); ; n++ {
		var end error
		if text, end = readLine(r, text[:0]); end != nil && !errors.Is(end, io.EOF) {
			return end
		}
		if n == 1 {
			var err error
			if text, err = sideText(flag, name, text); err != nil {
				return err
			}
		}
		if len(bytes.TrimSpace(text)) > 0 && !f(n, text) || end != nil {
			return nil //nolint:nilerr // io.EOF
		}
	}
}

var errLongLine = fmt.Errorf("a line of more than %d bytes", maxLine)

// readLine appends a line, without its end. With io.EOF it is the last one.
func readLine(r *bufio.Reader, dst []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		dst = append(dst, part...)
		if len(dst) > maxLine {
			return dst, errLongLine
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return dst, err
		}
	}
}

// placeOfLine is where a line of a file is: "rows.jsonl:7".
func placeOfLine(name string, line int64) string { return fmt.Sprintf("%s:%d", ui.Quote(name), line) }

// lineProblems are lines of files that are wrong, the first ones by their text.
type lineProblems struct {
	what string               // a line is, such as "row"
	at   func(n int64) string // where a line is
	all  []string
	more int64
	hint string
}

func (w *lineProblems) add(n int64, err error) {
	if len(w.all) == shownWrong {
		w.more++
		return
	}
	var hinted interface{ Hint() string }
	if w.hint == "" && errors.As(err, &hinted) {
		w.hint = hinted.Hint()
	}
	w.all = append(w.all, w.at(n)+": "+err.Error())
}

// err returns the error for all lines that are wrong, or nil.
func (w *lineProblems) err() error {
	if len(w.all) == 0 {
		return nil
	}
	e := &usageError{msg: w.all[0], hint: w.hint}
	if n := w.more + int64(len(w.all)); n > 1 {
		e.msg = fmt.Sprintf("%s are wrong, and nothing was written\n  %s", ui.Plural(n, w.what), strings.Join(w.all, "\n  "))
		if w.more > 0 {
			e.msg += fmt.Sprintf("\n  and %s more", ui.Count(w.more))
		}
	}
	return e
}
