package format

import (
	"slices"
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

// Mappings are tried in order; the first match applies.
type Mappings []Mapping

// LongestFirst returns mappings sorted so that the longest matching Old applies.
func LongestFirst[M ~struct{ Old, New string }](all []M) Mappings {
	var ms Mappings
	for _, m := range all {
		ms = append(ms, Mapping(m))
	}
	slices.SortStableFunc(ms, func(a, b Mapping) int { return len(b.old()) - len(a.old()) })
	return ms
}

// Apply returns the reference rewritten by the first mapping that matches; ok
// reports whether one does.
func (ms Mappings) Apply(uri string) (to string, ok bool) {
	for _, m := range ms {
		rest, ok := m.cut(uri)
		switch {
		case ok && rest == "":
			return m.New, true
		case ok:
			return strings.TrimSuffix(m.New, "/") + rest, true
		}
	}
	return "", false
}
