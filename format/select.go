package format

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ErrNoMatch matches errors about selections of names that do not exist.
var ErrNoMatch = errors.New("nothing matches")

// Selector selects operators. Each element is a uid, a name, an id of 32 hex
// digits, a prefix of one id of at least 4 digits, or a pattern (see
// [Globs]) that is matched against uids and names, and against the ids of operators
// that have neither. A nil Selector selects all operators.
//
// Before Flink 2.0 snapshots do not record uids, so an element is also compared as
// a uid, by the id that Flink derives from it.
type Selector []string

// minIDDigits is the minimum length of an id prefix.
const minIDDigits = 4

// ByID returns a Selector of the operators with these ids. Without ids it selects
// nothing.
func ByID(ids ...OperatorID) Selector {
	s := Selector{}
	for _, id := range ids {
		s = append(s, id.String())
	}
	return s
}

// Operators returns the selected operators, in file order. If an element matches no
// operator, the error is a *NoMatchError.
func (s Selector) Operators(sp *Savepoint) ([]*Operator, error) {
	if s == nil {
		return sp.Operators, nil
	}
	chosen := make(map[*Operator]bool, len(s))
	names := indexNames(sp)
	done := make(map[string]bool, len(s))
	for _, want := range s {
		if done[want] {
			continue
		}
		done[want] = true
		found := names.exact(want)
		if len(found) == 0 {
			var err error
			if found, err = matching(sp, want); err != nil {
				return nil, err
			}
		}
		for _, op := range found {
			chosen[op] = true
		}
	}
	var all []*Operator
	for _, op := range sp.Operators {
		if chosen[op] {
			all = append(all, op)
		}
	}
	return all, nil
}

// Operator returns the selected operator. It is an error if s selects several.
func (s Selector) Operator(sp *Savepoint) (*Operator, error) {
	all, err := s.Operators(sp)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%q matches %d operators, expected 1", []string(s), len(all))
	}
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Set returns the selected operators as a set.
func (s Selector) Set(sp *Savepoint) (map[*Operator]bool, error) {
	all, err := s.Operators(sp)
	if err != nil {
		return nil, err
	}
	set := make(map[*Operator]bool, len(all))
	for _, op := range all {
		set[op] = true
	}
	return set, nil
}

// nameIndex maps ids, uids and names to operators, so that selecting n operators by
// exact names does not scan all operators n times.
type nameIndex struct {
	ids   map[OperatorID][]*Operator
	names map[string][]*Operator
}

func indexNames(sp *Savepoint) nameIndex {
	x := nameIndex{make(map[OperatorID][]*Operator, len(sp.Operators)), map[string][]*Operator{}}
	for _, op := range sp.Operators {
		x.ids[op.ID] = append(x.ids[op.ID], op)
		for _, name := range []Text{op.UID, op.Name} {
			if n := name.String(); n != "" {
				x.names[n] = append(x.names[n], op)
			}
		}
	}
	return x
}

// exact returns the operators with the id, uid or name want. The result has the
// same operators as matching, perhaps in another order. It returns nil for patterns
// and prefixes.
func (x nameIndex) exact(want string) []*Operator {
	if want == "" || isPattern(want) {
		return nil
	}
	found := slices.Concat(x.ids[OperatorIDOf(want)], x.names[want])
	if id, ok := ParseOperatorID(want); ok {
		found = append(found, x.ids[id]...)
	}
	return found
}

func matching(sp *Savepoint, want string) ([]*Operator, error) {
	var exact, byPrefix []*Operator
	id, lower := OperatorIDOf(want), strings.ToLower(want)
	for _, op := range sp.Operators {
		switch {
		case op.ID == id && want != "", op.ID.String() == lower, isNamed(op.UID, want), isNamed(op.Name, want), isUnnamed(op, want):
			exact = append(exact, op)
		case len(want) >= minIDDigits && strings.HasPrefix(op.ID.String(), lower):
			byPrefix = append(byPrefix, op)
		}
	}
	switch {
	case len(exact) > 0:
		return exact, nil
	case len(byPrefix) > 1:
		return nil, fmt.Errorf("%q is a prefix of %d operator ids", want, len(byPrefix))
	case len(byPrefix) == 1:
		return byPrefix, nil
	}
	e := &NoMatchError{What: "operator", Want: want}
	for _, op := range sp.Operators {
		e.Available = append(e.Available, op.Label())
	}
	return nil, e
}

// isNamed reports whether an operator has a name that the pattern matches.
func isNamed(name Text, pattern string) bool {
	return name.String() != "" && Globs{pattern}.Match(name.String())
}

// isUnnamed reports whether op has neither uid nor name and the pattern matches its
// id. So "*" selects all operators.
func isUnnamed(op *Operator, pattern string) bool {
	return op.UID.String() == "" && op.Name.String() == "" && Globs{pattern}.Match(op.ID.String())
}

// Globs selects names. Each element is a name, or a pattern as in [path.Match],
// except that "*" and "?" also match "/". A nil Globs selects all names.
type Globs []string

// ByName returns Globs that match exactly these names. Without names they match
// nothing.
func ByName(names ...string) Globs {
	g := Globs{}
	for _, name := range names {
		g = append(g, globMeta.Replace(name))
	}
	return g
}

var globMeta = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

// Match reports whether g selects a name.
func (g Globs) Match(name string) bool {
	return g == nil || slices.ContainsFunc(g, func(p string) bool {
		if p == name || !isPattern(p) {
			return p == name
		}
		ok, _ := path.Match(noPath.Replace(p), noPath.Replace(name))
		return ok
	})
}

// isPattern reports whether p contains pattern characters.
func isPattern(p string) bool { return strings.ContainsAny(p, `*?[\`) }

// noPath replaces slashes, so that "*" and "?" of path.Match match them.
var noPath = strings.NewReplacer("/", "\x00")

// Check returns a *NoMatchError if an element of g matches none of the names. what
// is the kind of the names, such as "state".
func (g Globs) Check(what string, names []string) error {
	if len(g) == 0 {
		return nil
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	for _, p := range g {
		if _, found := slices.BinarySearch(names, p); !found && !slices.ContainsFunc(names, Globs{p}.Match) {
			return &NoMatchError{What: what, Want: p, Available: names}
		}
	}
	return nil
}

// NoMatchError is the error of a selection of a name that does not exist. It
// matches ErrNoMatch.
type NoMatchError struct {
	What      string // "operator", "state"
	Want      string
	Available []string
}

func (e *NoMatchError) Error() string { return fmt.Sprintf("no %s matches %q", e.What, e.Want) }

// Is reports whether target is ErrNoMatch.
func (e *NoMatchError) Is(target error) bool { return target == ErrNoMatch }

// Hint returns the available names, for users.
func (e *NoMatchError) Hint() string {
	const most = 12
	if len(e.Available) == 0 {
		return fmt.Sprintf("there are no %ss to choose from", e.What)
	}
	list, more := e.Available, ""
	if len(list) > most {
		list, more = list[:most], fmt.Sprintf(" and %d more", len(list)-most)
	}
	return "available: " + quoted(list) + more
}

func quoted(all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = fmt.Sprintf("%q", s)
	}
	return strings.Join(out, ", ")
}
