package types

// describe of each codec returns the type of its values.

func (s scalar) describe(*describer) *Type {
	if s.typ == nil {
		return &Type{Kind: TypeAny}
	}
	return s.typ
}

func (nothing) describe(*describer) *Type    { return &Type{Kind: TypeNull} }
func (e enum) describe(*describer) *Type     { return &Type{Kind: TypeEnum, Names: e} }
func (javaStream) describe(*describer) *Type { return &Type{Kind: TypeAny} }
func (kryoCodec) describe(*describer) *Type  { return &Type{Kind: TypeAny} }

func (e scalaEnum) describe(d *describer) *Type { return e.names.describe(d) }

func (variantCodec) describe(d *describer) *Type {
	return record{variantShape, tupleOf(bytesCodec, bytesCodec)}.describe(d)
}

// all returns the types of codecs.
func (d *describer) all(codecs ...codec) []*Type {
	all := make([]*Type, len(codecs))
	for i, c := range codecs {
		all[i] = c.describe(d)
	}
	return all
}

// optionalType returns the type of values that can be absent.
func optionalType(t *Type) *Type { return &Type{Kind: TypeOptional, Parts: []*Type{t}} }

func (a array) describe(d *describer) *Type      { return &Type{Kind: TypeList, Parts: d.all(a.one)} }
func (l linkedList) describe(d *describer) *Type { return array{1, nullIf{1, l.one}}.describe(d) }
func (n nullIf) describe(d *describer) *Type     { return optionalType(n.one.describe(d)) }
func (n nullable) describe(d *describer) *Type {
	t := optionalType(n.one.describe(d))
	t.Size = n.padding
	return t
}
func (m mapOf) describe(d *describer) *Type {
	return &Type{Kind: TypeMap, Parts: d.all(m.key, m.value)}
}
func (j joined) describe(d *describer) *Type   { return array{1, j.one}.describe(d) }
func (m mapValue) describe(d *describer) *Type { return optionalType(m.one.describe(d)) }
func (s sized) describe(d *describer) *Type    { return s.one.describe(d) }

func (t tuple) codecs() []codec {
	all := make([]codec, len(t))
	for i := range t {
		all[i] = t[i].codec
	}
	return all
}

func (t tuple) describe(d *describer) *Type {
	return &Type{Kind: TypeTuple, Parts: d.all(t.codecs()...)}
}

func (c record) describe(d *describer) *Type {
	return &Type{Kind: TypeRecord, Names: c.shape.Names, Parts: d.all(c.fields.codecs()...)}
}

func (c row) describe(d *describer) *Type {
	t := &Type{Kind: TypeRow, Kinds: c.kinds > 0}
	for _, p := range d.all(c.fields...) {
		t.Parts = append(t.Parts, optionalType(p))
	}
	return t
}

func (c pojoOf) describe(d *describer) *Type {
	t := record{c.shape, c.fields}.describe(d)
	t.Class, t.Null = c.class, true
	for i, sub := range c.subs {
		s := *sub.describe(d)
		s.Class = c.subclasses[i]
		t.Subclasses = append(t.Subclasses, &s)
	}
	return t
}

func (e either) describe(d *describer) *Type {
	return &Type{Kind: TypeChoice, Parts: d.all(record{leftShape, tupleOf(e.left)}, record{rightShape, tupleOf(e.right)})}
}

func (c choice) describe(d *describer) *Type {
	t := &Type{Kind: TypeChoice}
	for _, r := range c.of {
		t.Parts = append(t.Parts, r.describe(d))
	}
	return t
}

func (c *avroRecord) describe(d *describer) *Type {
	if d.records[c] {
		return &Type{Kind: TypeRef, Class: c.name}
	}
	if d.records == nil {
		d.records = map[*avroRecord]bool{}
	}
	d.records[c] = true
	t := c.record.describe(d)
	t.Class = c.name
	return t
}

func (u avroUnion) describe(d *describer) *Type {
	t := &Type{Kind: TypeChoice}
	null := false
	for i, c := range u.of {
		switch {
		case u.shapes[i] == nil:
			null = true
		case u.bare:
			t = c.describe(d)
		default:
			t.Parts = append(t.Parts, record{u.shapes[i], tupleOf(c)}.describe(d))
		}
	}
	switch {
	case null && u.bare && t.Kind == TypeChoice && len(t.Parts) == 0:
		return &Type{Kind: TypeNull}
	case null:
		return optionalType(t)
	}
	return t
}

func (a *avroBlocks) describe(d *describer) *Type {
	if a.isMap {
		return &Type{Kind: TypeMap, Parts: d.all(stringDataCodec, a.one)}
	}
	return &Type{Kind: TypeList, Parts: d.all(a.one)}
}

func (f framedLayout) describe(d *describer) *Type { return f.of.describe(d) }
func (l rawValue) describe(d *describer) *Type     { return l.one.describe(d) }
func (rawBytes) describe(*describer) *Type         { return &Type{Kind: TypeBytes} }

// describe returns the type of a field or element.
func (c *cell) describe(d *describer) *Type {
	switch {
	case c.typ != nil:
		return c.typ
	case c.of != nil:
		return c.of.describe(d)
	}
	return &Type{Kind: TypeAny}
}

func (l binaryRow) describe(d *describer) *Type {
	t := &Type{Kind: TypeRow, Kinds: true}
	for _, c := range l.fields {
		t.Parts = append(t.Parts, optionalType(c.describe(d)))
	}
	if l.shape != nil {
		t.Kind, t.Names = TypeRecord, l.shape.Names
	}
	return t
}

func (l binaryArray) describe(d *describer) *Type {
	return &Type{Kind: TypeList, Parts: []*Type{optionalType(l.one.describe(d))}}
}

func (l binaryMap) describe(d *describer) *Type {
	return &Type{Kind: TypeMap, Parts: []*Type{optionalType(l.keys.one.describe(d)), optionalType(l.values.one.describe(d))}}
}
