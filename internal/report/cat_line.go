package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Line returns what an element or entry holds as one line: key, namespace, map key, time
// and value, of each text the beginning. It may hold anything: escape it.
func (o *CatOptions) Line(it *CatItem) string {
	t := o.rowOf(it)
	if t.encoding != "json" && t.encoding != "redacted" {
		t.value = strings.TrimRight(t.encoding+" "+t.value, " ")
	}
	var head []string
	for _, part := range []struct{ before, text, after string }{{"", t.key, ""}, {"namespace ", t.namespace, ""}, {"[", t.userKey, "]"}} {
		if part.text != "" {
			head = append(head, part.before+beginning(part.text)+part.after)
		}
	}
	line := strings.Join(head, " ")
	switch {
	case it.Keyed != nil && it.Keyed.Timer:
		return line + " at " + timeOfMillis(it.Keyed.Time)
	case line == "":
		return beginning(t.value)
	case t.value == "":
		return line
	}
	return line + " → " + beginning(t.value)
}

// lineBytes is how much of a text a line has at most.
const lineBytes = 4 << 10

// beginning returns text, or as much of it as a line has.
func beginning(text string) string {
	if len(text) <= lineBytes {
		return text
	}
	n := lineBytes
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// Indented returns what cat prints for an element or entry, over several lines.
func (o *CatOptions) Indented(it *CatItem) (string, error) {
	e := NewCatEncoder(*o)
	var b bytes.Buffer
	err := json.Indent(&b, e.Append(nil, it), "", "  ")
	return strings.TrimRight(b.String(), "\n"), err
}
