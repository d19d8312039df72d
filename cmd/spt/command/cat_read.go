package command

import (
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
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
)

// catItem is one element, or one entry of a broadcast map. It is valid until
// the next.
type catItem struct {
	part       *catPart
	index      int64
	stored     []byte // the element, or the entry, in the bytes of its codec
	decoded    bool   // value, and key if it is an entry, are what it says
	entry      bool
	key, value value.Value
	count      int64  // with --distinct
	line       []byte // it as JSON, where a unit made it already
}

// shown is how elements are printed.
func (c *catter) shown() report.CatOptions {
	return report.CatOptions{Output: c.output, Format: c.env.run.Format, Distinct: c.distinct, Raw: c.raw}
}

// decodes reports whether values are decoded, rather than printed as stored.
func (c *catter) decodes() bool {
	o := c.shown()
	return o.Decode()
}

// shown returns the element of a state as it is printed.
func (it *catItem) shown(st *catState) report.CatItem {
	return report.CatItem{State: &st.shown, Subtask: it.part.subtask, Index: it.index, Stored: it.stored,
		Decoded: it.decoded, Entry: it.entry, Key: it.key, Value: it.value, Count: it.count, Line: it.line}
}

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

// errPiece ends a walk through a map after a piece of it.
var errPiece = errors.New("internal: a piece")

// part calls f with it for each element of a unit. Of a map, these are the entries
// from c.from on; next is the one that follows a piece, if there may be one.
func (c *catter) part(ctx context.Context, u work.Unit, st *catState, it *catItem, f func() error) (next int64, err error) {
	h := it.part.h
	for k := range it.part.state {
		if h.States[k].Name == h.States[it.part.state].Name {
			return 0, format.Errorf(format.ErrUnsupported, "two states of the name %q in one handle", st.name)
		}
	}
	var values reader.Values
	decode := c.decodes() || c.filter != nil && c.filter.looks == looksAtValues
	if decode {
		if values, err = c.snap.Values(ctx, h, it.part.state); err != nil {
			err = format.At(err, "state %q", st.name)
			if c.storedReadable(ctx, h, st.name) {
				err = &notReadable{err}
			}
			return 0, err
		}
	}
	codec, err := c.snap.Codec(h.Codec)
	if err != nil {
		return 0, err
	}
	if decode && values.Key != nil && c.decodes() {
		var done error
		var bytes, entries int64
		err := format.EachEntry(ctx, c.snap.Source(), codec, h, st.name, func(e format.MapEntry) error {
			if e.Index < c.from {
				return nil
			}
			*it = catItem{part: it.part}
			if done = c.decodeEntry(st, it, values, e); done == nil {
				it.stored = c.keep(it.stored)
				done = f()
			}
			bytes, entries = bytes+int64(len(e.Stored)), entries+1
			if c.piece && done == nil && (bytes >= catBytes || entries >= catElements) {
				next, done = e.Index+1, errPiece
			}
			return done
		})
		if err == errPiece {
			return next, nil
		}
		if err != nil && done == nil && errors.Is(err, format.ErrCorrupt) && c.storedReadable(ctx, h, st.name) {
			err = &notReadable{err}
		}
		return 0, err
	}
	return 0, u.EachElement(ctx, c.snap.Source(), codec, h, func(e format.Element) error {
		*it = catItem{part: it.part, index: e.Index, stored: c.keep(e.Value)}
		switch {
		case !decode:
		case values.Key != nil: // the map is one element, though --where looks into it
			if err := c.decodeMap(ctx, codec, st, it, values); err != nil {
				return err
			}
		default:
			if err := c.decode(st, it, values); err != nil {
				return err
			}
		}
		return f()
	})
}

// keep returns p, or a copy where elements outlive their cursor.
func (c *catter) keep(p []byte) []byte {
	if c.kept == nil {
		return p
	}
	return c.kept.copy(p)
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

// decode reads the value of an element.
func (c *catter) decode(st *catState, it *catItem, values reader.Values) error {
	if values.Element == nil {
		c.notDecoded(st, values.Why)
		return nil
	}
	v, err := value.ReadAll(values.Element, it.stored)
	if ok, err := c.decoded(st, err, "element", it.index); !ok {
		return err
	}
	it.decoded, it.value = true, v
	return nil
}

// decodeEntry makes it an entry of a broadcast state. One that is not decoded is
// shown as stored, without a key.
func (c *catter) decodeEntry(st *catState, it *catItem, values reader.Values, e format.MapEntry) error {
	it.index, it.stored = e.Index, e.Stored
	k, err := value.ReadAll(values.Key, e.Key)
	var v value.Value
	if err == nil {
		v, err = value.ReadAll(values.Value, e.Value)
	}
	if ok, err := c.decoded(st, err, "entry", e.Index); !ok {
		return err
	}
	it.decoded, it.entry, it.key, it.value = true, true, k, v
	return nil
}

// decodeMap reads the whole map of a broadcast state.
func (c *catter) decodeMap(ctx context.Context, codec format.OperatorCodec, st *catState, it *catItem, values reader.Values) error {
	var pairs []value.Value
	err := format.EachEntry(ctx, c.snap.Source(), codec, it.part.h, st.name, func(e format.MapEntry) error {
		k, err := value.ReadAll(values.Key, e.Key)
		if err != nil {
			return err
		}
		v, err := value.ReadAll(values.Value, e.Value)
		pairs = append(pairs, k, v)
		return err
	})
	if ok, err := c.decoded(st, err, "element", it.index); !ok {
		return err
	}
	it.decoded, it.value = true, value.Map(pairs)
	return nil
}

// decoded reports whether a value was read; one that is valid and still not decoded
// is noted.
func (c *catter) decoded(st *catState, err error, part string, index int64) (bool, error) {
	switch {
	case errors.Is(err, format.ErrUnsupported):
		c.notDecoded(st, err.Error())
		return false, nil
	case err != nil:
		return false, &notReadable{format.At(err, "state %q/%s %d", st.name, part, index)}
	}
	return true, nil
}

// notDecoded notes, once for a state, that its values are shown as stored.
func (c *catter) notDecoded(st *catState, why string) {
	if st.unknownSaid || !c.decodes() || st.kind == "raw" {
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

// plain makes a value one that expressions compare and look into: integers are
// int, byte arrays text of their bytes, records and maps with text for keys are maps.
// record is called with the maps made of records.
func plain(v value.Value, record func(map[string]any)) any {
	switch v.Kind() {
	case value.KindNull:
		return nil
	case value.KindBool:
		return v.Bool()
	case value.KindInt:
		return int(v.Int())
	case value.KindUint, value.KindFloat32, value.KindFloat64, value.KindDecimal:
		return v.Float()
	case value.KindList:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.At(i), record)
		}
		return out
	case value.KindRecord:
		m := make(map[string]any, v.Len())
		if v.Class() != "" {
			m["@class"] = v.Class()
		}
		for i := range v.Len() {
			m[v.Name(i)] = plain(v.At(i), record)
		}
		record(m)
		return m
	case value.KindMap:
		m := make(map[string]any, v.Len())
		for i := range v.Len() {
			k := v.Key(i)
			if _, twice := m[k.Text()]; twice || k.Kind() != value.KindString {
				return plainPairs(v, record)
			}
			m[k.Text()] = plain(v.At(i), record)
		}
		return m
	}
	return v.String()
}

func plainPairs(v value.Value, record func(map[string]any)) []any {
	out := make([]any, v.Len())
	for i := range out {
		out[i] = []any{plain(v.Key(i), record), plain(v.At(i), record)}
	}
	return out
}
