package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
)

// catState is one state of an operator, over the subtasks that hold it.
type catState struct {
	op          *format.Operator
	label       string // of the operator
	name        string
	kind        string
	mode        format.Mode
	parts       []catPart
	unknownSaid bool
}

func newCatState(env *Env, op *format.Operator, st *format.NamedState, raw bool) *catState {
	s := &catState{op: op, label: operatorName(env, op), name: st.Name.String(), kind: st.Mode.String(), mode: st.Mode}
	if raw {
		s.kind = "raw"
	}
	return s
}

// catPart is a state in one subtask.
type catPart struct {
	place   format.Place
	subtask int32
	h       *format.OperatorHandle
	state   int         // in h
	handle  work.Handle // the location of h
}

// catItem is one element, or one entry of a broadcast map. It is valid until
// the next.
type catItem struct {
	part       *catPart
	index      int64
	stored     []byte // the element, or the entry, in the bytes of its codec
	decoded    bool   // value, and key if it is an entry, are what it says
	entry      bool
	key, value any
	count      int64  // with --distinct
	line       []byte // it as JSON, where a unit made it already
}

// catStates finds the states of sp in the order they are printed. sp is what was
// picked of whole.
func (o *catOptions) catStates(env *Env, sp, whole *format.Savepoint) ([]*catState, error) {
	type id struct {
		name format.Text
		mode format.Mode
		raw  bool
	}
	var all []*catState
	var names []string
	positions := map[*format.Subtask]work.Handle{}
	for i, op := range whole.Operators {
		for k, sub := range op.Subtasks {
			positions[sub] = work.Handle{Operator: i, Subtask: k, ID: op.ID, Index: sub.Index}
		}
	}
	for _, op := range sp.Operators {
		byID := map[id]*catState{}
		subs := slices.Clone(op.Subtasks)
		slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
		for _, raw := range []bool{false, true} {
			for _, sub := range subs {
				h, slot := sub.Managed, format.SlotManaged
				if raw {
					h, slot = sub.Raw, format.SlotRaw
				}
				if h == nil {
					continue
				}
				for k := range h.States {
					st := &h.States[k]
					key := id{st.Name, st.Mode, raw}
					s := byID[key]
					if s == nil {
						names = append(names, st.Name.String())
						s = newCatState(env, op, st, raw)
						byID[key] = s
						if matches(o.states, s.name) {
							all = append(all, s)
						}
					}
					at := positions[sub]
					at.Slot = slot
					s.parts = append(s.parts, catPart{format.Place{Operator: op, Subtask: sub, Slot: slot}, sub.Index, h, k, at})
				}
			}
		}
	}
	if err := env.checkGlobs(o.states, names, "operator state", "no operator state (keyed state is not shown)"); err != nil {
		return nil, err
	}
	return all, nil
}

// operatorName is the best name of an operator, as the snapshot or --names has
// it.
func operatorName(env *Env, op *format.Operator) string {
	if uid := env.run.Learned(op.ID.String()); uid != "" && op.UID.String() == "" && op.Name.String() == "" {
		return uid
	}
	return op.Label()
}

// name is a name as it is shown: --format is for values, but for what is to be
// seen by nobody.
func (c *catter) name(s string) string {
	if c.env.run.Format == ui.FormatRedacted {
		return c.env.run.Text(s)
	}
	return s
}

// shown reports whether values are taken apart, rather than printed as stored.
func (c *catter) shown() bool { return !c.raw && c.env.run.Format != ui.FormatRedacted }

// placed says of an error in which stream of the snapshot it is.
func (c *catter) placed(err error, at *catPart) error {
	value, isValue := err.(*notReadable) // not errors.As: nothing wraps it
	if isValue {
		err = value.error
	}
	var e *format.Error
	if errors.As(err, &e) && e.Offset >= 0 {
		inner := *e
		inner.Offset = -1 // it is one of the value, or of the stream, not of the file
		err = &inner
	}
	err = format.InFile(format.At(err, "%v", at.place), c.snap.Container.Name)
	if isValue {
		return &notReadable{err}
	}
	return err
}

// part calls f with it for each element of a unit.
func (c *catter) part(ctx context.Context, u work.Unit, st *catState, it *catItem, f func() error) (err error) {
	h := it.part.h
	for k := range it.part.state {
		if h.States[k].Name == h.States[it.part.state].Name {
			return format.Errorf(format.ErrUnsupported, "two states of the name %q in one handle", st.name)
		}
	}
	var values reader.Values
	decode := c.shown() || c.filter != nil && c.filter.looks == looksAtValues
	if decode {
		if values, err = c.snap.Values(ctx, h, it.part.state); err != nil {
			err = format.At(err, "state %q", st.name)
			if c.storedReadable(ctx, h, st.name) {
				err = &notReadable{err}
			}
			return err
		}
	}
	codec, err := c.snap.Codec(h.Codec)
	if err != nil {
		return err
	}
	return u.EachElement(ctx, c.snap.Source(), codec, h, func(e format.Element) error {
		if c.kept != nil {
			e.Value = c.kept.copy(e.Value)
		}
		it.index, it.stored = e.Index, e.Value
		it.decoded, it.entry, it.key, it.value, it.count = false, false, nil, nil, 0
		if !decode {
			return f()
		}
		return c.decode(st, it, values, f)
	})
}

// storedReadable reports whether elements can be had as they are stored: bytes that
// are missing are missing in any form.
func (c *catter) storedReadable(ctx context.Context, h *format.OperatorHandle, name string) bool {
	codec, err := c.snap.Codec(h.Codec)
	if err != nil {
		return false
	}
	err = format.EachElement(ctx, c.snap.Source(), codec, h, name, func(format.Element) error { return errEnough })
	return errors.Is(err, errEnough)
}

// decode takes an element apart and calls f with it, or with each of its
// entries.
func (c *catter) decode(st *catState, it *catItem, values reader.Values, f func() error) error {
	var entries []format.Entry
	var err error
	switch {
	case values.Decode != nil:
		it.value, err = values.Decode(it.stored)
	case values.Entries != nil:
		entries, err = values.Entries(it.stored)
	default:
		c.notDecoded(st, values.Why)
		return f()
	}
	switch {
	case errors.Is(err, format.ErrUnsupported):
		it.value = nil
		c.notDecoded(st, err.Error())
		return f()
	case err != nil:
		return &notReadable{format.At(err, "state %q/element %d", st.name, it.index)}
	}
	it.decoded = true
	if values.Entries == nil {
		return f()
	}
	if !c.shown() { // the map is one element, though --where looks into it
		pairs := make(reader.Pairs, len(entries))
		for i, e := range entries {
			pairs[i] = [2]any{e.Key, e.Value}
		}
		it.value = pairs
		return f()
	}
	whole := it.stored
	for i := range entries {
		it.setEntry(int64(i), &entries[i], whole[entries[i].Off:entries[i].End])
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// setEntry makes it an entry.
func (it *catItem) setEntry(index int64, e *format.Entry, stored []byte) {
	it.index, it.stored, it.key, it.value = index, stored, e.Key, e.Value
	it.decoded, it.entry = true, true
}

// notDecoded notes, once for a state, that its values are shown as stored.
func (c *catter) notDecoded(st *catState, why string) {
	if st.unknownSaid || !c.shown() || st.kind == "raw" {
		return
	}
	st.unknownSaid = true
	c.unknown = append(c.unknown, fmt.Sprintf("%s/%s (%s)", ui.Quote(st.label), ui.Quote(st.name), ui.Printable(why)))
}

// notReadable is a value, or the description of a state, that breaks its
// format. The elements around it can be had all the same.
type notReadable struct{ error }

func (e *notReadable) Unwrap() error { return e.error }
func (e *notReadable) Hint() string {
	return "--raw shows elements as they are stored, without reading values; is the snapshot sound?  spt verify"
}

// catVars are the names that can stand in --where, in the order of the help.
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
	{"value", "what it says, where its type is decoded, else nil; a tuple's first field is value[0], a POJO's or a map's value.name; byte arrays are text of these bytes", types.Any, looksAtValues},
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

// looksAt is what an expression has to know of an element.
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
		return false, &usageError{fmt.Sprintf("--where: %s, of %s/%s, subtask %d, index %d", first, ui.Quote(c.name(st.label)), ui.Quote(c.name(st.name)), it.part.subtask, it.index), f.hint}
	}
	return v.(bool), nil
}

// plain makes a value one that expressions compare and look into: integers are
// int, byte arrays text of their bytes, and maps with text for keys are maps. Of
// those it made, record gets the ones that have fields rather than entries.
func plain(v any, record func(map[string]any)) any {
	switch v := v.(type) {
	case int8:
		return int(v)
	case int16:
		return int(v)
	case int32:
		return int(v)
	case int64:
		return int(v)
	case uint64:
		return float64(v) // only those beyond int64 come so
	case float32:
		return float64(v)
	case []byte:
		return string(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e, record)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e, record)
		}
		record(out)
		return out
	case reader.Pairs:
		return plain([][2]any(v), record)
	case [][2]any:
		m := make(map[string]any, len(v))
		for _, e := range v {
			k, ok := e[0].(string)
			if _, twice := m[k]; !ok || twice {
				return pairList(v, record)
			}
			m[k] = plain(e[1], record)
		}
		return m
	case reader.Decimal:
		return v.Float()
	case fmt.Stringer: // a big integer, a time
		return v.String()
	}
	return v
}

func pairList(pairs [][2]any, record func(map[string]any)) []any {
	out := make([]any, len(pairs))
	for i, e := range pairs {
		out[i] = []any{plain(e[0], record), plain(e[1], record)}
	}
	return out
}
