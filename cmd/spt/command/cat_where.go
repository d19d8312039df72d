package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/savepoint-tools/spt/internal/ui"
)

// catVars are the names that can be used in --where, in the order of the help.
var catVars = []struct {
	name, help string
	kind       types.Type
	looks      looksAt
}{
	{"operator", "its operator: uid, else name, else id", types.String, looksAtState},
	{"id", "the operator's id in hexadecimal", types.String, looksAtState},
	{"state", "the state's name", types.String, looksAtState},
	{"kind", "list, union, broadcast, raw", types.String, looksAtState},
	{"subtask", "the subtask that holds it", types.Int, looksAtState},
	{"index", "its number in the subtask", types.Int, looksAtElements},
	{"size", "its bytes as stored", types.Int, looksAtElements},
	{"value", "its value if its type is decoded, else nil; a tuple's first field is value[0], a POJO's or a map's value.name; byte arrays are text of these bytes", types.Any, looksAtValues},
	{"key", "of an entry of broadcast state; else nil", types.Any, looksAtValues},
	{"KiB, MiB, GiB", "1024, 1024², 1024³", nil, looksAtState},
}

func catWhereHelp() string {
	var b strings.Builder
	for _, v := range catVars {
		entry(&b, helpWidth, 2, 17, v.name, v.help)
	}
	return strings.TrimRight(b.String(), "\n")
}

// catFilter is the expression of --where.
type catFilter struct {
	program *vm.Program
	machine vm.VM
	vars    map[string]any
	looks   looksAt
	part    *catPart
	fields  *fields
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
	env := types.Map{"KiB": types.Int, "MiB": types.Int, "GiB": types.Int}
	f := &catFilter{vars: units(), fields: &fields{records: map[uintptr]bool{}, patched: map[ast.Node]*ast.MemberNode{}}, hint: "values of other types, and those not decoded, are left out by --state, or by a condition in front:  'state == \"ids\" and value > 5'"}
	var err error
	for f.looks = looksAtState; f.looks <= looksAtValues; f.looks++ {
		for _, v := range catVars {
			if v.kind != nil && v.looks == f.looks {
				env[v.name] = v.kind
			}
		}
		if f.program, err = expr.Compile(text, append(f.fields.options(), expr.Env(env), expr.AsBool())...); err == nil {
			return f, nil
		}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return nil, &usageError{fmt.Sprintf("--where %s: %s", text, first), exprHint(err, slices.Collect(maps.Keys(env)), "cat")}
}

func (f *catFilter) holds(c *catter, st *catState, it *catItem) (bool, error) {
	if f.part != it.part {
		f.part = it.part
		f.vars["operator"], f.vars["id"], f.vars["state"], f.vars["kind"] = st.label, st.op.ID.String(), st.name, st.kind
		f.vars["subtask"] = int(it.part.subtask)
	}
	f.vars["index"], f.vars["size"] = int(it.index), len(it.stored)
	if f.looks == looksAtValues {
		f.fields.next(it.part.h)
		f.vars["value"], f.vars["key"] = f.fields.of(it.value), f.fields.of(it.key)
	}
	v, err := f.machine.Run(f.program, f.vars)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		if strings.HasPrefix(first, "reflect") || strings.Contains(first, "interface conversion") {
			first = "it does not fit the type of this value" // what the library says is about itself
		}
		return false, &usageError{fmt.Sprintf("--where: %s, of %s/%s, subtask %d, index %d", first, ui.Quote(c.env.hidden(st.label)), ui.Quote(c.env.hidden(st.name)), it.part.subtask, it.index), f.hint}
	}
	return v.(bool), nil
}
