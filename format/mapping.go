package format

import (
	"slices"
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

// Mappings are tried in their order.
type Mappings []Mapping

// LongestFirst makes mappings of which the longest Old counts.
func LongestFirst[M ~struct{ Old, New string }](all []M) Mappings {
	var ms Mappings
	for _, m := range all {
		ms = append(ms, Mapping(m))
	}
	slices.SortStableFunc(ms, func(a, b Mapping) int { return len(b.place()) - len(a.place()) })
	return ms
}

// Apply is where a reference leads by the first mapping that fits.
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
