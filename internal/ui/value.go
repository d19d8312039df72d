package ui

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"unicode/utf8"
)

// Value returns how p, bytes from a file, is shown in format f:
//
//   - auto: as text if it is UTF-8 and printable throughout, else as hex after "0x" (text that starts with 0x
//     comes in quotes, so the two cannot be taken for each other);
//   - text: as [Quote] shows it;
//   - hex, base64: nothing but the digits;
//   - redacted: "len=7 sha256=…" with the first 12 hex digits. That hides what p says, and not what it could be
//     guessed to be: short or common values can be found by trying.
//
// What is longer than limit columns is cut and ends in "…"; 0 means no limit, and redacted is never cut.
func Value(p []byte, f Format, limit int) string {
	prefix := ""
	switch f {
	case FormatRedacted:
		sum := sha256.Sum256(p)
		return fmt.Sprintf("len=%d sha256=%x", len(p), sum[:6])
	case FormatAuto:
		if utf8.Valid(p) && isClean(string(p)) {
			if len(p) >= 2 && p[0] == '0' && p[1] == 'x' {
				return limited(quoted(string(p)), limit, false)
			}
			return text(p, limit)
		}
		prefix = "0x"
	case FormatText:
		return text(p, limit)
	}

	// Only what will be seen is encoded: a value may be megabytes, and a table cell is not. A column more than the
	// limit, and whole groups of base64, so that the cut is the same as on the whole.
	seen, more := p, false
	if n := limit/4*3 + 3; limit > 0 && n < len(p) {
		seen, more = p[:n], true
	}
	if f == FormatBase64 {
		return limited(base64.StdEncoding.EncodeToString(seen), limit, more)
	}
	return limited(prefix+hex.EncodeToString(seen), limit, more)
}

func text(p []byte, limit int) string {
	// Room for characters of four bytes that share a column with marks upon them; the cut falls between characters.
	const perColumn = 16
	seen, more := p, false
	if n := limit * perColumn; limit > 0 && limit < len(p)/perColumn {
		for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(p[n]); back++ {
			n--
		}
		seen, more = p[:n], true
	}
	return limited(Quote(string(seen)), limit, more)
}

// limited cuts s to limit columns. With more, something after s is missing already.
func limited(s string, limit int, more bool) string {
	switch {
	case limit <= 0:
		return s
	case more:
		return columns.Truncate(s, limit-1, "") + ellipsis
	}
	return columns.Truncate(s, limit, ellipsis)
}
