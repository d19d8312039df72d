package format

import (
	"fmt"
	"strings"
)

// Mapping replaces the location Old by New at the start of references. Old matches
// whole path elements; different spellings of the same location (see
// [CanonicalURI]) match. An absolute path without a scheme is a local path.
type Mapping struct{ Old, New string }

// Fits reports whether a reference starts with Old.
func (m Mapping) Fits(uri string) bool {
	_, ok := m.cut(uri)
	return ok
}

// cut returns what follows Old in a reference: "" or a text that starts with "/".
func (m Mapping) cut(uri string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(uriOrPath(uri), m.old())
	if strings.HasPrefix(rest, "//") { // Old is a scheme: s3://
		rest = rest[1:]
	}
	return rest, ok && (rest == "" || rest[0] == '/')
}

// old returns Old in its canonical spelling, without trailing slashes.
func (m Mapping) old() string { return strings.TrimRight(uriOrPath(m.Old), "/") }

// uriOrPath is CanonicalURI for a URI or a local path.
func uriOrPath(uri string) string {
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
		n := len(m.old())
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
