package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/keyset"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// keyList is the keys of the file that --keys names, as keys of each of the types that
// the states which are looked at have.
type keyList struct {
	env  *Env
	name string // of the file
	sets map[keyType]*keySet
	all  []*keySet // in the order found
	// seen has a bit for each line whose key occurs in a state.
	seen []atomic.Uint64
}

// keyType identifies the type of the keys of a handle.
type keyType struct {
	wire     format.Wire
	operator *format.Operator // nil if wire says all
}

// keySet is the keys of a list as keys of a type.
type keySet struct {
	list    *keyList
	codec   value.Codec // nil: keys are not decoded
	why     error       // they are not
	state   string      // the first one of the type, for errors
	builder *keyset.Builder
	wrong   lineProblems
	set     *keyset.Set
}

func newKeyList(env *Env, name string) *keyList {
	return &keyList{env: env, name: name, sets: map[keyType]*keySet{}}
}

func (l *keyList) typeOf(op *format.Operator, h format.KeyedHandle, schema format.KeyedSchema) keyType {
	k := keyType{wire: schema.Wire}
	if g, ok := h.(*format.KeyGroups); len(l.env.types) > 0 || ok && g.Codec != format.CodecFlink {
		k.operator = op
	}
	return k
}

// of returns the keys for a handle; nil before wants.
func (l *keyList) of(op *format.Operator, h format.KeyedHandle, schema format.KeyedSchema) *keySet {
	return l.sets[l.typeOf(op, h, schema)]
}

// wants notes that keys of state i of a handle are looked for.
func (l *keyList) wants(h *keyedHandle, i int) *keySet {
	k := l.typeOf(h.place.Operator, h.h, h.schema)
	s := l.sets[k]
	if s == nil {
		c := &h.codecs[i]
		s = &keySet{list: l, codec: c.Key, why: c.Why, builder: keyset.NewBuilder(l.env.common.tmp)}
		s.state = ui.Quote(l.env.hidden(operatorName(l.env, h.place.Operator))) + "/" + ui.Quote(l.env.hidden(h.schema.States[i].Name.String()))
		s.wrong = lineProblems{what: "key", at: func(n int64) string { return placeOfLine(l.name, n) }}
		l.sets[k] = s
		l.all = append(l.all, s)
	}
	return s
}

// close removes temporary files.
func (l *keyList) close() error {
	var errs []error
	for _, s := range l.all {
		errs = append(errs, s.builder.Close())
		if s.set != nil {
			errs = append(errs, s.set.Close())
		}
	}
	return errors.Join(errs...)
}

// read reads the file. Keys that are not of a type that is looked for are an error if
// all are needed; otherwise only if the keys are of none of the types.
func (l *keyList) read(ctx context.Context, needsAll bool) error {
	if err := l.env.sides.claim("--keys", l.name); err != nil {
		return err
	}
	body, err := l.env.sideBody(ctx, l.name)
	if err != nil {
		return fmt.Errorf("--keys: %w", err)
	}
	last := int64(0)
	var failed error
	err = eachLine(body, "--keys", l.name, func(n int64, text []byte) bool {
		last = n
		failed = l.add(n, text)
		return failed == nil
	})
	if err = errors.Join(err, failed, body.Close()); ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("--keys %s: %w", ui.Quote(l.name), err)
	}
	if last == 0 {
		return usagef("--keys %s: the file has no key", ui.Quote(l.name))
	}
	l.seen = make([]atomic.Uint64, last/64+1)
	var wrong error
	fits := false
	for _, s := range l.all {
		if err := s.problem(); err != nil {
			if wrong == nil {
				wrong = err
			}
			continue
		}
		if s.set, err = s.builder.Set(); err != nil {
			return err
		}
		fits = true
	}
	if needsAll || !fits {
		return wrong
	}
	return nil
}

// add adds the key of a line to the sets.
func (l *keyList) add(n int64, text []byte) error {
	key, stored, err := keyOfLine(text)
	for _, s := range l.all {
		p, wrong := stored, err
		if wrong == nil {
			p, wrong = value.Part(s.codec, key, stored)
		}
		if wrong != nil {
			s.wrong.add(n, wrong)
		} else if err := s.builder.Add(p, n); err != nil {
			return err
		}
	}
	return nil
}

// printedKey is what tells a line that cat printed from a key that is an object.
type printedKey struct {
	State    *string `json:"state"`
	KeyGroup *int32  `json:"key_group"`
}

// printed reports whether a line is one that cat printed.
func printed(text []byte) bool {
	var p printedKey
	return text[0] == '{' && json.Unmarshal(text, &p) == nil && p.State != nil && p.KeyGroup != nil
}

// keyOfLine returns the key of a line: JSON, or of a line that cat printed its key, which may
// be bytes.
func keyOfLine(text []byte) (key, stored []byte, err error) {
	text = bytes.TrimSpace(text)
	if !printed(text) {
		return text, nil, nil
	}
	l, err := parseChange(text)
	if err != nil {
		return nil, nil, err
	}
	if stored, err = storedBytes(l.KeyBase64, l.KeyHex); err == nil && l.Key == nil && stored == nil {
		err = errors.New("the line has no key")
	}
	return l.Key, stored, err
}

// problem returns the error for keys that are not of the type.
func (s *keySet) problem() error {
	if s.codec == nil && len(s.wrong.all) > 0 {
		return format.Errorf(format.ErrUnsupported, "--keys: the keys of %s are not decoded%s", s.state, because(s.why))
	}
	s.wrong.hint = "they are looked for in " + s.state + ": --operator and --state choose states whose keys are of the type"
	return s.wrong.err()
}

// because returns why something is so, if it is known.
func because(why error) string {
	if why == nil {
		return ""
	}
	return " (" + why.Error() + ")"
}

// usable reports whether all keys of the list are of the type.
func (s *keySet) usable() bool { return s.set != nil }

// has reports whether a key is in the list, and notes it.
func (s *keySet) has(key []byte) (bool, error) {
	line, ok, err := s.set.Find(key)
	if !ok && err == nil && s.codec != nil { // it may be stored in another way than spt writes it
		var v value.Value
		if v, err = value.ReadAll(s.codec, key); err != nil {
			return false, err
		}
		var p []byte
		if p, err = s.codec.Append(nil, v); err == nil && !bytes.Equal(p, key) {
			line, ok, err = s.set.Find(p)
		}
	}
	if ok && err == nil {
		s.list.seen[line/64].Or(1 << (line % 64))
	}
	return ok, err
}

// shownKeys is the number of lines that are named of keys that occur nowhere.
const shownKeys = 5

// missing returns the number of keys, and of those that occurred nowhere, with the lines of
// the first ones.
func (l *keyList) missing() (n, missing int64, lines []int64, err error) {
	i := slices.IndexFunc(l.all, (*keySet).usable)
	if i < 0 {
		return 0, 0, nil, nil
	}
	err = l.all[i].set.Each(func(line int64) {
		if l.seen[line/64].Load()>>(line%64)&1 == 1 {
			return
		}
		missing++
		at, _ := slices.BinarySearch(lines, line)
		if at < shownKeys {
			lines = slices.Insert(lines, at, line)
			lines = lines[:min(len(lines), shownKeys)]
		}
	})
	return l.all[i].set.Len(), missing, lines, err
}

// remark says which keys occurred nowhere; "" if all did.
func (l *keyList) remark() (string, error) {
	n, missing, lines, err := l.missing()
	if err != nil || missing == 0 {
		return "", err
	}
	var places []string
	for _, line := range lines {
		places = append(places, fmt.Sprint(line))
	}
	more := ""
	if missing > shownKeys {
		more = ", …"
	}
	word := "lines"
	if missing == 1 {
		word = "line"
	}
	return fmt.Sprintf("keys of %s that occur nowhere in what was read: %s of %s, %s %s%s", ui.Quote(l.name), ui.Count(missing), ui.Count(n), word, strings.Join(places, ", "), more), nil
}

// keyAsker answers a filter of one handle of keyed state by the keys of a list.
type keyAsker struct {
	keys   *keySet
	of     transform.FilterHandle
	invert bool
}

func (a *keyAsker) keep(e *format.KeyedEntry) (bool, error) {
	if e.Key == nil {
		return false, format.Errorf(format.ErrUnsupported, "--keys: the keys of %s are not known; use --state to choose others", a.keys.state)
	}
	found, err := a.keys.has(e.Key)
	if err != nil {
		return false, format.At(format.At(err, "key group %d/state %q/key", e.KeyGroup, a.of.Schema.States[e.State].Name), "operator %q", a.of.Operator.Label())
	}
	return found != a.invert, nil
}
