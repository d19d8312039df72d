package command

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/expression"
	"github.com/savepoint-tools/spt/internal/ui"
)

// catVars are the names that can be used in --where, in the order of the help.
var catVars = []struct {
	name, help string
	kind       expression.Type
	looks      looksAt
}{
	{"operator", "its operator: uid, else name, else id", expression.String, looksAtState},
	{"id", "the operator's id in hexadecimal", expression.String, looksAtState},
	{"state", "the state's name", expression.String, looksAtState},
	{"kind", "list, union, broadcast, raw; of keyed state value, list, map, …, timers", expression.String, looksAtState},
	{"subtask", "the subtask that holds it", expression.Int, looksAtState},
	{"index", "its number in the subtask; 0 in keyed state", expression.Int, looksAtElements},
	{"size", "its bytes as stored; in keyed state with its key", expression.Int, looksAtElements},
	{"value", "its value if its type is decoded, else nil; a tuple's first field is value[0], a POJO's or a map's value.name; byte arrays are text of these bytes", expression.Any, looksAtValues},
	{"key", "of an entry of broadcast or keyed state; else nil", expression.Any, looksAtValues},
	{"key_group", "of an entry of keyed state; else nil", expression.Any, looksAtElements},
	{"namespace", "of an entry of keyed state, such as a window: namespace.start; else nil", expression.Any, looksAtValues},
	{"user_key", "of an entry of a map in keyed state; else nil", expression.Any, looksAtValues},
	{"time", "at which a timer fires, in ms since 1970; else nil", expression.Any, looksAtElements},
	{"ttl_timestamp", "when a value with a time to live was last updated, in ms since 1970, of a list an array; else nil", expression.Any, looksAtValues},
	{"KiB, MiB, GiB", "1024, 1024², 1024³", 0, looksAtState},
}

func catWhereHelp() string {
	var b strings.Builder
	for _, v := range catVars {
		entry(&b, helpWidth, 2, 17, v.name, v.help)
	}
	languageHelp(&b, 17)
	return strings.TrimRight(b.String(), "\n")
}

// The numbers of catVars.
const (
	catOperator = iota
	catID
	catStateName
	catKind
	catSubtask
	catIndex
	catSize
	catValue
	catKey
	catKeyGroup
	catNamespace
	catUserKey
	catTime
	catTTL
	catNames
)

// catFilter is the expression of --where. One is used by one reader at a time.
type catFilter struct {
	program *expression.Program
	vars    expression.Vars
	invert  bool // the elements for which it is false are kept
	looks   looksAt
	part    *catPart
	hint    string // for values that it does not fit
}

// looksAt is what an expression needs of an element.
type looksAt int

const (
	looksAtState    looksAt = iota // where it is
	looksAtElements                // its index and its size too
	looksAtValues                  // what it says
)

func newCatFilter(text string) (*catFilter, error) {
	var names []expression.Name
	for _, v := range catVars[:catNames] {
		names = append(names, expression.Name{Name: v.name, Type: v.kind})
	}
	p, err := expression.Compile(text, append(names, units()...))
	if err != nil {
		return nil, notCompiled("--where "+text, err, "cat")
	}
	f := &catFilter{program: p, hint: "values of other types, and those not decoded, are left out by --state, or by a condition in front:  'state == \"ids\" and value > 5'"}
	for i, v := range catVars[:catNames] {
		if p.Uses(i) {
			f.looks = max(f.looks, v.looks)
		}
	}
	return f.another(), nil
}

// another returns the same filter for another reader.
func (f *catFilter) another() *catFilter {
	c := *f
	c.part, c.vars = nil, expression.Vars{Values: make([]value.Value, catNames)}
	return &c
}

// holds reports whether the expression is true for an element or entry.
func (f *catFilter) holds(c *catter, st *catState, it *catItem) (bool, error) {
	if f.part != it.part {
		f.turn(st, it.part)
	}
	f.set(st, it)
	ok, err := f.program.Eval(&f.vars)
	if err != nil {
		return false, &usageError{fmt.Sprintf("--where: %s, of %s/%s, subtask %d, %s", c.env.misfit(err), ui.Quote(c.env.hidden(st.label)), ui.Quote(c.env.hidden(st.name)), it.part.subtask, it.position()), f.hint}
	}
	return ok != f.invert, nil
}

// turn sets what the elements of a part have in common, and to null what they lack.
func (f *catFilter) turn(st *catState, part *catPart) {
	f.part = part
	values := f.vars.Values
	clear(values)
	values[catOperator], values[catID] = value.String(st.label), value.String(st.op.ID.String())
	values[catStateName], values[catKind] = value.String(st.name), value.String(st.kind)
	values[catSubtask] = value.Int(int64(part.subtask))
	// Maps of Go programs have the fields that are set: what one lacks, another may have.
	f.vars.OpenRecords = part.openRecords()
}

// set sets what an element has of what the expression uses.
func (f *catFilter) set(st *catState, it *catItem) {
	p, values := f.program, f.vars.Values
	values[catIndex], values[catSize] = value.Int(it.index), value.Int(it.size())
	if p.Uses(catKey) {
		values[catKey] = it.key
	}
	if p.Uses(catValue) {
		values[catValue] = it.value
	}
	k := it.keyed
	if k == nil {
		return
	}
	values[catKeyGroup] = value.Int(int64(k.KeyGroup))
	if p.Uses(catStateName) || p.Uses(catKind) {
		values[catStateName], values[catKind] = value.String(st.name), value.String(st.kind)
	}
	if p.Uses(catNamespace) {
		values[catNamespace] = k.Namespace.Value
	}
	if p.Uses(catUserKey) {
		values[catUserKey] = k.UserKey.Value
	}
	if p.Uses(catTTL) {
		values[catTTL] = k.TTL()
	}
	if p.Uses(catTime) {
		if values[catTime] = value.Null(); k.Timer {
			values[catTime] = value.Int(k.Time)
		}
	}
}

// openRecords reports whether records have the fields that are set, as maps of Go
// programs do.
func (p *catPart) openRecords() bool {
	if p.keyed != nil {
		g, ok := p.keyed.h.(*format.KeyGroups)
		return ok && g.Codec == format.CodecNative
	}
	return p.h.Codec != format.CodecFlink
}

// position says where in a subtask an element or entry is.
func (it *catItem) position() string {
	if it.keyed != nil {
		return fmt.Sprintf("key group %d", it.keyed.KeyGroup)
	}
	return fmt.Sprintf("index %d", it.index)
}
