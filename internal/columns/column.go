package columns

import (
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// Column is a column of a table. Each of its values can also be null.
type Column struct {
	Name string
	// Type is nil for JSON: values are strings that hold it.
	Type *types.Type
	// Few is set where the column has few distinct values: they are stored once per row
	// group.
	Few bool
}

// Same reports whether two types are the same type of Parquet, and the same parts of
// values are its parts.
func Same(a, b *types.Type) bool {
	return a == b || parquet.EqualNodes((&builder{}).of(a).node, (&builder{}).of(b).node)
}

// Text returns the type of Parquet of a type, in the notation of Parquet.
func Text(t *types.Type) string { return (&builder{}).of(t).node.String() }

// column is a type of Parquet: how it is declared, and where and how values are put.
// Definition and repetition levels are as Parquet has them: how many of the optional and
// repeated parts around a value are there, and at which repeated part it begins.
type column struct {
	node  parquet.Node
	leaf  func(v value.Value) (parquet.Value, error) // nil: it has parts
	json  bool                                       // the leaf is JSON: it holds any value
	kind  types.TypeKind                             // of one that has parts: TypeRecord, TypeTuple, TypeList or TypeMap
	kinds bool                                       // the last part of a row is its kind
	parts []*column
	names []string // of the parts of a group

	first, leaves int // index of the first leaf, and how many there are
	repetition    int // level of the list or map around it
	definition    int // level of a value that is not null
}

// maxLeaves bounds the leaves of a type, in which a record can occur many times.
const maxLeaves = 10_000

// builder makes columns of a type.
type builder struct {
	leaves int
	open   []string               // classes of the records around
	known  map[string]*types.Type // records by class, for references
}

// of returns the column of a type, without its levels.
func (b *builder) of(t *types.Type) *column {
	t, _ = t.Deref()
	switch t.Kind {
	case types.TypeList:
		e := b.of(t.Parts[0])
		return &column{node: parquet.List(parquet.Optional(e.node)), kind: types.TypeList, parts: []*column{e}}
	case types.TypeMap:
		k, v := b.of(t.Parts[0]), b.of(t.Parts[1])
		return &column{node: parquet.Map(k.node, parquet.Optional(v.node)), kind: types.TypeMap, parts: []*column{k, v}}
	case types.TypeTuple, types.TypeRow, types.TypeRecord:
		if len(t.Parts) > 0 && len(t.Subclasses) == 0 && b.leaves < maxLeaves {
			return b.group(t)
		}
	case types.TypeRef:
		if r := b.known[t.Class]; r != nil && !slices.Contains(b.open, t.Class) && b.leaves < maxLeaves {
			return b.group(r)
		}
	}
	b.leaves++
	return leafOf(t)
}

// group returns the column of a record, a tuple or a row.
func (b *builder) group(t *types.Type) *column {
	c := &column{kind: types.TypeTuple, kinds: t.Kinds}
	if t.Kind == types.TypeRecord {
		c.kind = types.TypeRecord
	}
	if b.known == nil {
		b.known = map[string]*types.Type{}
	}
	if t.Class != "" {
		b.known[t.Class] = t
		b.open = append(b.open, t.Class)
		defer func() { b.open = b.open[:len(b.open)-1] }()
	}
	taken := map[string]bool{}
	add := func(name string, part *column) {
		c.names, c.parts = append(c.names, unique(name, taken)), append(c.parts, part)
	}
	for i, p := range t.Parts {
		name := "f" + strconv.Itoa(i)
		if t.Names != nil {
			name = t.Names[i]
		}
		add(name, b.of(p))
	}
	if c.kinds {
		b.leaves++
		add("row_kind", leafOf(&types.Type{Kind: types.TypeString}))
	}
	c.node = groupOf(c.names, c.parts)
	return c
}

// unique returns a name that is not taken, whatever the case: DuckDB and others do not
// tell names apart by it.
func unique(name string, taken map[string]bool) string {
	if name = strings.ToValidUTF8(name, "\ufffd"); name == "" {
		name = "_"
	}
	for base, n := name, 2; taken[strings.ToLower(name)]; n++ {
		name = base + "_" + strconv.Itoa(n)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// group is a group whose fields keep their order; a parquet.Group sorts them.
type group struct {
	parquet.Group
	fields []parquet.Field
}

func groupOf(names []string, parts []*column) group {
	g := group{Group: parquet.Group{}}
	for i, name := range names {
		node := parquet.Optional(parts[i].node)
		g.Group[name] = node
		one := parquet.Group{name: node}
		g.fields = append(g.fields, one.Fields()...)
	}
	return g
}

// Fields implements parquet.Node.
func (g group) Fields() []parquet.Field { return g.fields }

// number numbers the leaves below a column and sets levels, given those around it.
func (c *column) number(leaf, repetition, definition int) (next int) {
	c.first, c.repetition, c.definition = leaf, repetition, definition
	switch {
	case c.leaf != nil:
		leaf++
	case c.kind == types.TypeList:
		leaf = c.parts[0].number(leaf, repetition+1, definition+2)
	case c.kind == types.TypeMap:
		leaf = c.parts[0].number(leaf, repetition+1, definition+1) // keys are required
		leaf = c.parts[1].number(leaf, repetition+1, definition+2)
	default:
		for _, p := range c.parts {
			leaf = p.number(leaf, repetition, definition+1)
		}
	}
	c.leaves = leaf - c.first
	return leaf
}
