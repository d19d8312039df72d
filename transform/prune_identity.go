package transform

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// Limits of what KeepLatestBy and KeepMaxBy hold of a state.
const (
	maxIdentities = 2 << 20  // in about 140 MiB, with the largest values 200 MiB
	maxTexts      = 64 << 20 // bytes of the largest values, if these are strings
)

// fieldPath is the way to a part of a value: names of fields, numbers of elements, keys
// of maps.
type fieldPath struct {
	text  string
	steps []string
}

// parseField reads a path in the notation of expressions: value.split.topic, value[0],
// or without value: split.topic, [0].
func parseField(text string) (fieldPath, error) {
	rest := text
	if after, ok := strings.CutPrefix(text, "value"); ok && (after == "" || after[0] == '.' || after[0] == '[') {
		rest = after
	}
	p := fieldPath{text: text}
	for rest != "" {
		var step string
		if inner, ok := strings.CutPrefix(rest, "["); ok {
			step, rest, ok = strings.Cut(inner, "]")
			if n, err := strconv.ParseUint(step, 10, 31); !ok || err != nil || strconv.FormatUint(n, 10) != step {
				return p, fmt.Errorf("field %q: expected [N] with the number of an element", text)
			}
		} else {
			rest = strings.TrimPrefix(rest, ".")
			n := strings.IndexAny(rest, ".[")
			if n < 0 {
				n = len(rest)
			}
			step, rest = rest[:n], rest[n:]
		}
		if step == "" {
			return p, fmt.Errorf("field %q: expected names separated by dots, or [N]", text)
		}
		p.steps = append(p.steps, step)
	}
	return p, nil
}

// of returns the part of a value.
func (p *fieldPath) of(v value.Value) (value.Value, error) {
	for _, step := range p.steps {
		found := false
		switch v.Kind() {
		case value.KindRecord:
			v, found = v.Field(step)
		case value.KindList:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < v.Len() {
				v, found = v.At(i), true
			}
		case value.KindMap:
			for i := range v.Len() {
				if k := v.Key(i); !found && k.Kind() == value.KindString && k.Text() == step {
					v, found = v.At(i), true
					break
				}
			}
		}
		if !found {
			return v, format.Errorf(format.ErrUnsupported, "it has no field %q", p.text)
		}
	}
	return v, nil
}

// identityOptions are the parsed fields of PruneOptions.
type identityOptions struct {
	by  []fieldPath
	max *fieldPath // nil: the latest is kept
}

func (o *PruneOptions) identity() (i identityOptions, err error) {
	switch wants := o.Keep == KeepLatestBy || o.Keep == KeepMaxBy; {
	case wants != (len(o.By) > 0):
		return i, fmt.Errorf("option By is for %s and %s, which need it", KeepLatestBy, KeepMaxBy)
	case (o.Keep == KeepMaxBy) != (o.Max != ""):
		return i, fmt.Errorf("option Max is for %s, which needs it", KeepMaxBy)
	case wants && o.Values == nil:
		return i, fmt.Errorf("%s needs Values", o.Keep)
	}
	for _, text := range o.By {
		p, err := parseField(text)
		if err != nil {
			return i, err
		}
		i.by = append(i.by, p)
	}
	if o.Max != "" {
		p, err := parseField(o.Max)
		if err != nil {
			return i, err
		}
		i.max = &p
	}
	return i, nil
}

// best is the element of an identity that is kept.
type best struct {
	number int64
	size   int
}

// identities are the elements that are kept.
type identities struct {
	places  map[hash128.Digest]int32 // in kept, by the digest of the identity
	kept    []best
	largest []value.Value // of KeepMaxBy: the value of each of kept
	texts   int           // bytes in largest
}

// add keeps an element instead of the one before of its identity; with a value, if it is
// larger. The value may refer to an arena.
func (s *identities) add(id hash128.Digest, now best, v *value.Value) error {
	k, known := s.places[id]
	if !known {
		if len(s.kept) == maxIdentities {
			return format.Errorf(format.ErrLimit, "more than %d identities", maxIdentities)
		}
		k = int32(len(s.kept))
		s.places[id] = k
		s.kept = append(s.kept, now)
	}
	if v == nil {
		s.kept[k] = now
		return nil
	}
	if !known {
		s.largest = append(s.largest, value.Null())
		if _, err := compareValues(*v, *v); err != nil {
			return err
		}
	} else if c, err := compareValues(*v, s.largest[k]); err != nil || c <= 0 {
		return err
	}
	if s.texts += len(v.Text()) - len(s.largest[k].Text()); s.texts > maxTexts {
		return format.Errorf(format.ErrLimit, "largest values of more than %d bytes", maxTexts)
	}
	s.kept[k], s.largest[k] = now, ownValue(*v)
	return nil
}

// byIdentity calls keep with the number of the element to keep of each identity, and
// returns how many these are, and their bytes.
func (u *unionState) byIdentity(ctx context.Context, in format.View, o *PruneOptions, keep func(i int64)) (kept, size int64, err error) {
	fields, err := o.identity()
	if err != nil {
		return 0, 0, err
	}
	codec := make([]value.Codec, len(u.handles))
	for i, h := range u.handles {
		values, err := o.Values(ctx, h, u.states[i])
		if err != nil {
			return 0, 0, err
		}
		if codec[i] = values.Element; codec[i] == nil {
			return 0, 0, format.Errorf(format.ErrUnsupported, "state %q is not decoded, so its elements have no fields: %s", u.name, values.Why)
		}
	}
	all := identities{places: map[hash128.Digest]int32{}}
	hash := hash128.New()
	arena := value.Arena{Views: true}
	var v value.Value
	var text []byte
	number := int64(-1)
	err = u.each(ctx, in, func(i int, index int64, stored []byte) error {
		number++
		at := func(err error) error {
			return format.At(err, "subtask %d/state %q/element %d", u.subtasks[i], u.name, index)
		}
		arena.Reset()
		if err := value.ReadAllIn(&arena, codec[i], stored, &v); err != nil {
			return at(err)
		}
		text = text[:0]
		for k := range fields.by {
			part, err := fields.by[k].of(v)
			if err != nil {
				return at(err)
			}
			text = append(part.AppendJSON(text, nil, nil), 0) // JSON has no such byte
		}
		var largest *value.Value
		if fields.max != nil {
			part, err := fields.max.of(v)
			if err != nil {
				return at(err)
			}
			largest = &part
		}
		if err := all.add(hash.Sum(text), best{number, len(stored)}, largest); err != nil {
			return at(err)
		}
		return nil
	})
	for _, b := range all.kept {
		keep(b.number)
		size += int64(b.size)
	}
	return int64(len(all.kept)), size, err
}

// ownValue returns a value without parts that does not refer to an arena.
func ownValue(v value.Value) value.Value {
	if v.Kind() == value.KindString {
		return value.String(strings.Clone(v.Text()))
	}
	return v
}

// compareValues orders values of one kind: integers, floats, strings, instants. Null is
// before all others.
func compareValues(a, b value.Value) (int, error) {
	switch ka, kb := a.Kind(), b.Kind(); {
	case ka == value.KindNull || kb == value.KindNull:
		return cmp.Compare(min(ka, 1), min(kb, 1)), nil
	case ka == value.KindUint && kb == value.KindUint:
		return cmp.Compare(a.Uint(), b.Uint()), nil
	case ka == value.KindUint && kb == value.KindInt, ka == value.KindInt && kb == value.KindUint:
		return cmp.Compare(ka, kb), nil // beyond the largest of the other kind
	case ka != kb:
		return 0, format.Errorf(format.ErrUnsupported, "%v cannot be compared with %v", ka, kb)
	case ka == value.KindInt:
		return cmp.Compare(a.Int(), b.Int()), nil
	case ka == value.KindFloat32, ka == value.KindFloat64:
		if math.IsNaN(a.Float()) || math.IsNaN(b.Float()) {
			return 0, format.Errorf(format.ErrUnsupported, "NaN cannot be compared")
		}
		return cmp.Compare(a.Float(), b.Float()), nil
	case ka == value.KindString:
		return cmp.Compare(a.Text(), b.Text()), nil
	case ka == value.KindInstant:
		return cmp.Or(cmp.Compare(a.Int(), b.Int()), cmp.Compare(a.Nano(), b.Nano())), nil
	default:
		return 0, format.Errorf(format.ErrUnsupported, "%v cannot be compared", ka)
	}
}
