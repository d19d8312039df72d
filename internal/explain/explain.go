// Package explain explains the words that spt prints: the codes of findings, verdicts,
// warnings, and terms of Flink and of spt. It is the one source of spt explain and of
// docs/findings.md. What a finding means and what Flink does is in package
// format/finding; what to do, with commands of spt, is here.
//
//	e, ok := explain.Lookup("may be multiplied")
package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/finding"
)

// Kind is the kind of a word.
type Kind string

// The kinds.
const (
	Finding Kind = "finding" // a code of verify and check
	Verdict Kind = "verdict" // a result, a state or a warning of a command
	Term    Kind = "term"
)

// Kinds returns the kinds, in the order of the documentation.
func Kinds() []Kind { return []Kind{Finding, Verdict, Term} }

// Entry explains a word. All texts are sentences.
type Entry struct {
	Name    string // as it is printed
	Kind    Kind
	By      string   // of a verdict: the commands that print it
	Meaning string   // what it means
	Flink   string   // what Flink does; "" if that does not matter
	Do      string   // what to do; "" if nothing is to be done
	See     []string // names of other entries
}

// All returns all entries, by kind and name.
func All() []Entry {
	var all []Entry
	for _, f := range finding.Catalogue() {
		all = append(all, Entry{Name: f.Code, Kind: Finding, By: "verify, check", Meaning: f.Meaning, Flink: f.Flink, Do: todo[f.Code].do, See: todo[f.Code].see})
	}
	for _, v := range verdicts {
		v.Kind = Verdict
		all = append(all, v)
	}
	for _, t := range terms {
		t.Kind = Term
		all = append(all, t)
	}
	order := Kinds()
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)))
	})
	return all
}

// Lookup returns the entries of a name: a code, and a verdict of the same name. Case,
// and whether words are separated by spaces, hyphens or underscores, does not matter.
func Lookup(name string) (found []Entry) {
	for _, e := range All() {
		if normal(e.Name) == normal(name) {
			found = append(found, e)
		}
	}
	return found
}

// Names returns all names as words joined by hyphens, sorted: Lookup finds them all.
func Names() []string {
	var all []string
	for _, e := range All() {
		all = append(all, strings.ReplaceAll(normal(e.Name), " ", "-"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// normal returns a name as it is compared with others.
func normal(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), " ")
}
