package format

import (
	"fmt"
	"strings"
)

// Mapping replaces the place Old, with which references begin, by New: at whole
// elements of a path, the spellings of one place counting as equal. A plain
// absolute path is one of local files.
type Mapping struct{ Old, New string }

// Fits reports whether a reference begins with Old.
func (m Mapping) Fits(uri string) bool {
	_, ok := m.cut(uri)
	return ok
}

// cut is what is left of a reference without Old: nothing, or it begins with "/".
func (m Mapping) cut(uri string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(placeURI(uri), m.place())
	if strings.HasPrefix(rest, "//") { // Old is a scheme: s3://
		rest = rest[1:]
	}
	return rest, ok && (rest == "" || rest[0] == '/')
}

// place is Old in one spelling, without slashes at the end.
func (m Mapping) place() string { return strings.TrimRight(placeURI(m.Old), "/") }

// placeURI is CanonicalURI for what may be a path.
func placeURI(uri string) string {
	if strings.HasPrefix(uri, "/") {
		uri = "file:" + uri
	}
	return CanonicalURI(uri)
}

// Mappings are applied together: of those that fit, the one with the longest Old.
type Mappings []Mapping

// Apply returns where a reference leads; ok is false if no mapping fits.
func (ms Mappings) Apply(uri string) (to string, ok bool) {
	longest := -1
	for _, m := range ms {
		rest, fits := m.cut(uri)
		n := len(m.place())
		if !fits || n <= longest {
			continue
		}
		longest, ok = n, true
		if to = m.New; rest != "" {
			to = strings.TrimSuffix(m.New, "/") + rest
		}
	}
	return to, ok
}

// ParseMapping reads OLD=NEW.
func ParseMapping(s string) (Mapping, error) {
	old, to, ok := strings.Cut(s, "=")
	if !ok || old == "" {
		return Mapping{}, fmt.Errorf("%q is not OLD=NEW", s)
	}
	return Mapping{Old: old, New: to}, nil
}
