package protobuf

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// maxDepth limits the nesting of messages.
const maxDepth = 100

// NewCodec returns the codec of messages. set is a FileDescriptorSet with all imports,
// as protoc --include_imports --descriptor_set_out writes it; message is the full name of
// the type.
//
// A message is a record of all its fields in the order of the descriptor: a field that
// is not set is its default, or null if the message records whether it is set. Enums are
// names, or numbers that have no name. Messages with fields that the descriptor does not
// have are not decoded. Append writes fields in the order of their numbers, which other
// writers need not.
func NewCodec(set []byte, message string) (value.Codec, error) {
	var files descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(set, &files); err != nil {
		return nil, format.Errorf(format.ErrUnsupported, "not a descriptor set: %v", err)
	}
	all, err := protodesc.NewFiles(&files)
	if err != nil {
		return nil, format.Errorf(format.ErrUnsupported, "a descriptor set that is not valid: %v", err)
	}
	d, err := all.FindDescriptorByName(protoreflect.FullName(message))
	if err != nil {
		return nil, format.Errorf(format.ErrUnsupported, "the descriptor set has no message %q", message)
	}
	m, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, format.Errorf(format.ErrUnsupported, "%q is not a message", message)
	}
	c := codec{m, map[protoreflect.FullName]*value.Shape{}}
	c.addShapes(m)
	return c, nil
}

// codec is the codec of one type of messages.
type codec struct {
	of     protoreflect.MessageDescriptor
	shapes map[protoreflect.FullName]*value.Shape // of all types of messages in it
}

func (c codec) addShapes(m protoreflect.MessageDescriptor) {
	if c.shapes[m.FullName()] != nil {
		return
	}
	shape := &value.Shape{Names: make([]string, m.Fields().Len())}
	c.shapes[m.FullName()] = shape
	for i := range shape.Names {
		f := m.Fields().Get(i)
		shape.Names[i] = f.TextName()
		if f.IsMap() {
			f = f.MapValue()
		}
		if f.Message() != nil {
			c.addShapes(f.Message())
		}
	}
}

// Type returns the type of the messages.
func (c codec) Type() *types.Type { return c.typeOf(c.of, map[protoreflect.FullName]bool{}) }

func (c codec) typeOf(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) *types.Type {
	name := string(m.FullName())
	if seen[m.FullName()] {
		return &types.Type{Kind: types.TypeRef, Class: name}
	}
	seen[m.FullName()] = true
	t := &types.Type{Kind: types.TypeRecord, Class: name, Names: c.shapes[m.FullName()].Names}
	for i := range m.Fields().Len() {
		t.Parts = append(t.Parts, c.fieldType(m.Fields().Get(i), seen))
	}
	return t
}

func (c codec) fieldType(f protoreflect.FieldDescriptor, seen map[protoreflect.FullName]bool) *types.Type {
	switch {
	case f.IsMap():
		return &types.Type{Kind: types.TypeMap, Parts: []*types.Type{c.oneType(f.MapKey(), seen), c.oneType(f.MapValue(), seen)}}
	case f.IsList():
		return &types.Type{Kind: types.TypeList, Parts: []*types.Type{c.oneType(f, seen)}}
	case f.HasPresence():
		return &types.Type{Kind: types.TypeOptional, Parts: []*types.Type{c.oneType(f, seen)}}
	}
	return c.oneType(f, seen)
}

// oneType returns the type of one value of a field.
func (c codec) oneType(f protoreflect.FieldDescriptor, seen map[protoreflect.FullName]bool) *types.Type {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return &types.Type{Kind: types.TypeBool, Word: "boolean"}
	case protoreflect.FloatKind:
		return &types.Type{Kind: types.TypeFloat, Word: "float", Bits: 32}
	case protoreflect.DoubleKind:
		return &types.Type{Kind: types.TypeFloat, Word: "double", Bits: 64}
	case protoreflect.StringKind:
		return &types.Type{Kind: types.TypeString, Word: "string"}
	case protoreflect.BytesKind:
		return &types.Type{Kind: types.TypeBytes, Word: "bytes"}
	case protoreflect.EnumKind: // or a number without a name
		return &types.Type{Kind: types.TypeAny, Class: string(f.Enum().FullName())}
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return c.typeOf(f.Message(), seen)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return &types.Type{Kind: types.TypeInt, Word: "int", Bits: 32}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return &types.Type{Kind: types.TypeBigInt}
	}
	return &types.Type{Kind: types.TypeInt, Word: "long", Bits: 64} // uint32 too
}

// Skip implements [value.Codec].
func (c codec) Skip(p []byte) (int, error) {
	_, n, err := c.Read(p)
	return n, err
}

// Read implements [value.Codec].
func (c codec) Read(p []byte) (value.Value, int, error) {
	m := dynamicpb.NewMessage(c.of)
	if err := (proto.UnmarshalOptions{AllowPartial: true, RecursionLimit: maxDepth}).Unmarshal(p, m); err != nil {
		return value.Value{}, 0, format.Errorf(format.ErrCorrupt, "not a message %s: %v", c.of.FullName(), err)
	}
	v, err := c.message(m)
	return v, len(p), err
}

// FromJSON implements [value.JSONCodec].
func (c codec) FromJSON(p []byte) (value.Value, error) {
	v, err := c.Type().FromJSON(p)
	if err != nil {
		return value.Value{}, err
	}
	if _, err := c.Append(nil, v); err != nil {
		return value.Value{}, &value.JSONError{Problem: err.Error()}
	}
	return v, nil
}

// message returns the value of a message.
func (c codec) message(m protoreflect.Message) (value.Value, error) {
	d := m.Descriptor()
	if unknown := m.GetUnknown(); len(unknown) > 0 {
		number, _ := binary.Uvarint(unknown)
		return value.Value{}, format.Errorf(format.ErrUnsupported, "field %d is not in the descriptor of message %s", number>>3, d.FullName())
	}
	all := make([]value.Value, d.Fields().Len())
	for i := range all {
		f := d.Fields().Get(i)
		if f.HasPresence() && !m.Has(f) {
			continue
		}
		var err error
		if all[i], err = c.field(f, m.Get(f)); err != nil {
			return value.Value{}, err
		}
	}
	return value.Record(c.shapes[d.FullName()], all), nil
}

// field returns the value of a field.
func (c codec) field(f protoreflect.FieldDescriptor, v protoreflect.Value) (value.Value, error) {
	switch {
	case f.IsMap():
		return c.pairs(f, v.Map())
	case f.IsList():
		all := make([]value.Value, v.List().Len())
		for i := range all {
			var err error
			if all[i], err = c.one(f, v.List().Get(i)); err != nil {
				return value.Value{}, err
			}
		}
		return value.List(all), nil
	}
	return c.one(f, v)
}

// pairs returns the entries of a map in the order of their keys, which is the order in
// which they are written.
func (c codec) pairs(f protoreflect.FieldDescriptor, m protoreflect.Map) (value.Value, error) {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch x := a.Interface().(type) {
		case string:
			return strings.Compare(x, b.String())
		case bool:
			return cmp.Compare(number(x), number(b.Bool()))
		case uint32, uint64:
			return cmp.Compare(a.Uint(), b.Uint())
		}
		return cmp.Compare(a.Int(), b.Int())
	})
	var all []value.Value
	for _, k := range keys {
		key, err := c.one(f.MapKey(), k.Value())
		if err != nil {
			return value.Value{}, err
		}
		v, err := c.one(f.MapValue(), m.Get(k))
		if err != nil {
			return value.Value{}, err
		}
		all = append(all, key, v)
	}
	return value.Map(all), nil
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// one returns one value of a field.
func (c codec) one(f protoreflect.FieldDescriptor, v protoreflect.Value) (value.Value, error) {
	switch x := v.Interface().(type) {
	case bool:
		return value.Bool(x), nil
	case int32, int64:
		return value.Int(v.Int()), nil
	case uint32, uint64:
		return value.Uint(v.Uint()), nil
	case float32:
		return value.Float32(math.Float32bits(x)), nil
	case float64:
		return value.Float64(math.Float64bits(x)), nil
	case string:
		return value.String(x), nil
	case []byte:
		return value.Bytes(x), nil
	case protoreflect.EnumNumber:
		if e := f.Enum().Values().ByNumber(x); e != nil {
			return value.String(string(e.Name())), nil
		}
		return value.Int(int64(x)), nil
	case protoreflect.Message:
		return c.message(x)
	}
	return value.Value{}, format.Errorf(format.ErrUnsupported, "field %s of kind %s", f.FullName(), f.Kind())
}

// Append implements [value.Codec].
func (c codec) Append(dst []byte, v value.Value) ([]byte, error) {
	m := dynamicpb.NewMessage(c.of)
	if err := c.set(m, v, 0); err != nil {
		return dst, err
	}
	p, err := (proto.MarshalOptions{AllowPartial: true, Deterministic: true}).MarshalAppend(dst, m)
	if err != nil {
		return dst, format.Errorf(format.ErrUnsupported, "message %s: %v", c.of.FullName(), err)
	}
	return p, nil
}

// set sets the fields of a message.
func (c codec) set(m protoreflect.Message, v value.Value, depth int) error {
	d := m.Descriptor()
	shape := c.shapes[d.FullName()]
	if v.Kind() != value.KindRecord || !slices.Equal(v.Shape().Names, shape.Names) {
		return format.Errorf(format.ErrUnsupported, "expected a record with the fields of message %s", d.FullName())
	}
	if depth > maxDepth {
		return format.Errorf(format.ErrLimit, "messages nested more than %d deep", maxDepth)
	}
	for i := range shape.Names {
		f, part := d.Fields().Get(i), v.At(i)
		if part.IsNull() && f.HasPresence() {
			continue
		}
		if err := c.setField(m, f, part, depth); err != nil {
			return format.At(err, "%s", shape.Names[i])
		}
	}
	return nil
}

func (c codec) setField(m protoreflect.Message, f protoreflect.FieldDescriptor, v value.Value, depth int) error {
	switch {
	case f.IsMap():
		if v.Kind() != value.KindMap {
			return format.Errorf(format.ErrUnsupported, "expected %v, found %v", value.KindMap, v.Kind())
		}
		to := m.Mutable(f).Map()
		for i := range v.Len() {
			k, err := c.value(f.MapKey(), v.Key(i), protoreflect.Value{}, depth)
			if err != nil {
				return err
			}
			one, err := c.value(f.MapValue(), v.At(i), to.NewValue(), depth)
			if err != nil {
				return err
			}
			to.Set(k.MapKey(), one)
		}
		return nil
	case f.IsList():
		if v.Kind() != value.KindList {
			return format.Errorf(format.ErrUnsupported, "expected %v, found %v", value.KindList, v.Kind())
		}
		to := m.Mutable(f).List()
		for i := range v.Len() {
			one, err := c.value(f, v.At(i), to.NewElement(), depth)
			if err != nil {
				return err
			}
			to.Append(one)
		}
		return nil
	}
	one, err := c.value(f, v, m.NewField(f), depth)
	if err == nil {
		m.Set(f, one)
	}
	return err
}

// value converts one value of a field. empty is a message to set, if it is one.
func (c codec) value(f protoreflect.FieldDescriptor, v value.Value, empty protoreflect.Value, depth int) (protoreflect.Value, error) {
	kind := kinds[f.Kind()]
	if n := v.Int(); f.Kind() == protoreflect.EnumKind && v.Kind() == value.KindInt && n == int64(int32(n)) {
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), nil
	}
	if v.Kind() != kind && !(kind == value.KindInt && v.Kind() == value.KindUint) {
		return empty, format.Errorf(format.ErrUnsupported, "expected %v, found %v", kind, v.Kind())
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(v.Bool()), nil
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(v.Text()), nil
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(v.Text())), nil
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(math.Float32frombits(uint32(v.Int()))), nil
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(math.Float64frombits(uint64(v.Int()))), nil
	case protoreflect.EnumKind:
		e := f.Enum().Values().ByName(protoreflect.Name(v.Text()))
		if e == nil {
			return empty, format.Errorf(format.ErrUnsupported, "enum %s has no constant %q", f.Enum().FullName(), v.Text())
		}
		return protoreflect.ValueOfEnum(e.Number()), nil
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return empty, c.set(empty.Message(), v, depth+1)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if v.Kind() == value.KindUint || v.Int() >= 0 {
			return protoreflect.ValueOfUint64(v.Uint()), nil
		}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		if v.Kind() == value.KindInt && v.Int() == int64(uint32(v.Int())) {
			return protoreflect.ValueOfUint32(uint32(v.Int())), nil
		}
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		if v.Kind() == value.KindInt {
			return protoreflect.ValueOfInt64(v.Int()), nil
		}
	default:
		if v.Kind() == value.KindInt && v.Int() == int64(int32(v.Int())) {
			return protoreflect.ValueOfInt32(int32(v.Int())), nil
		}
	}
	return empty, format.Errorf(format.ErrUnsupported, "%v does not fit into %s", v, f.Kind())
}

// kinds are the kinds of the values of fields.
var kinds = func() (all [32]value.Kind) {
	for i := range all {
		all[i] = value.KindInt
	}
	for k, v := range map[protoreflect.Kind]value.Kind{
		protoreflect.BoolKind: value.KindBool, protoreflect.StringKind: value.KindString, protoreflect.BytesKind: value.KindBytes, protoreflect.FloatKind: value.KindFloat32,
		protoreflect.DoubleKind: value.KindFloat64, protoreflect.EnumKind: value.KindString, protoreflect.MessageKind: value.KindRecord, protoreflect.GroupKind: value.KindRecord,
	} {
		all[k] = v
	}
	return all
}()
