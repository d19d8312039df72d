package types

import (
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Classes of Scala in Kryo 2, by the serializers of Twitter's chill, which Flink 1.x
// registers if flink-scala is on the class path. Kryo 5 writes the fields of a class,
// which are known for options, eithers and tuples.

// scalaIDs are the classes that flink-scala registers. Wire format: never change.
var scalaIDs = func() map[int]string {
	m := map[int]string{
		10: wrappers + "$SeqWrapper", 11: wrappers + "$IteratorWrapper", 12: wrappers + "$MapWrapper", 13: wrappers + "$JListWrapper", 14: wrappers + "$JMapWrapper",
		15: "scala.Some", 16: "scala.util.Left", 17: "scala.util.Right", 18: immutable + "Vector", 19: immutable + "Set$Set1", 20: immutable + "Set$Set2", 21: immutable + "Set$Set3", 22: immutable + "Set$Set4",
		23: immutable + "HashSet$HashTrieSet", 24: immutable + "Map$Map1", 25: immutable + "Map$Map2", 26: immutable + "Map$Map3", 27: immutable + "Map$Map4", 28: immutable + "HashMap$HashTrieMap",
		29: immutable + "Range$Inclusive", 30: immutable + "NumericRange$Inclusive", 31: immutable + "NumericRange$Exclusive",
		32: mutable + "BitSet", 33: mutable + "HashMap", 34: mutable + "HashSet", 35: wrappers + "$IterableWrapper",
		70: "scala.Symbol", 71: "scala.reflect.ClassTag", 72: "scala.runtime.BoxedUnit",
	}
	for n := 1; n <= 22; n++ {
		m[35+n] = fmt.Sprintf("scala.Tuple%d", n)
	}
	for i, types := range specialized {
		m[58+i] = fmt.Sprintf("scala.Tuple%d$mc%s$sp", len(types), types)
	}
	return m
}()

const (
	immutable = "scala.collection.immutable."
	mutable   = "scala.collection.mutable."
	wrappers  = "scala.collection.convert.Wrappers"
)

// specialized are the types of the fields of tuples without boxed numbers, in the order
// of their registrations.
var specialized = []string{"J", "I", "D", "JJ", "JI", "JD", "IJ", "II", "ID", "DJ", "DI", "DD"}

// scalaPair is the class of the entries of maps.
const scalaPair = "scala.Tuple2"

// scalaParts is the codec of the parts of a collection, after their number.
type scalaParts struct {
	kind  value.Kind
	size  int // of a part, at least
	read  func(k *kryoState, r *reader, n int) value.Value
	write func(k *kryoState, w *writer, v value.Value)
	parse func(int) kryoBody
}

// scalaEntries are the entries of maps: tuples.
var scalaEntries = scalaParts{kind: value.KindMap, size: 4, parse: kryoMap(false),
	read: func(k *kryoState, r *reader, n int) value.Value {
		all := make([]value.Value, 0, min(2*n, growFrom))
		for range n {
			at := r.Offset()
			if class := k.class(r); r.Err() == nil && class != scalaPair {
				r.Fail(at, format.ErrUnsupported, "an entry of a map of Scala of class %q is not decoded", class)
			}
			k.marker(r, "an entry of a map of Scala")
			if all = append(all, k.any(r, ""), k.any(r, "")); r.Err() != nil {
				return value.Null()
			}
		}
		return value.Map(all)
	},
	write: func(k *kryoState, w *writer, v value.Value) {
		for i := range v.Len() {
			k.putClass(w, scalaPair)
			w.p = append(w.p, 1)
			k.objects++
			k.putAny(w, v.Key(i), "")
			k.putAny(w, v.At(i), "")
		}
	},
}

// scalaElements are the elements of other collections.
var scalaElements = scalaParts{kind: value.KindList, size: 1, parse: kryoCollection(false),
	read: func(k *kryoState, r *reader, n int) value.Value { return value.List(k.elements(r, n)) },
	write: func(k *kryoState, w *writer, v value.Value) {
		for i := range v.Len() {
			k.putAny(w, v.At(i), "")
		}
	},
}

// scalaCollection is the codec of collections: uvarint count and parts.
func scalaCollection(of scalaParts) func(int) kryoBody {
	return func(version int) kryoBody {
		return kryoBody{parse: of.parse(version).parse,
			read: func(k *kryoState, r *reader) value.Value {
				off := r.Offset()
				n := int(r.uvarint())
				if r.CheckCount(off, n, "parts", of.size); r.Err() != nil {
					return value.Null()
				}
				return of.read(k, r, n)
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				if w.expects(v, of.kind) {
					w.uvarint(uint32(v.Len()))
					of.write(k, w, v)
				}
			},
		}
	}
}

// orderedShape is a sorted collection of Scala.
var orderedShape = fieldsOf("ordering", "elements")

// scalaSorted is the codec of sorted collections: uvarint count, an ordering, and parts.
func scalaSorted(of scalaParts) func(int) kryoBody {
	return func(version int) kryoBody {
		return kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				off := r.Offset()
				n := int(r.uvarint())
				r.CheckCount(off, n, "parts", of.size)
				order := k.any(r, "")
				if r.Err() != nil {
					return value.Null()
				}
				return value.Record(orderedShape, []value.Value{order, of.read(k, r, n)})
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				if w.fields(v, orderedShape) && w.expects(v.At(1), of.kind) {
					w.uvarint(uint32(v.At(1).Len()))
					k.putAny(w, v.At(0), "")
					of.write(k, w, v.At(1))
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				members := p.members(n, orderedShape.Names)
				if members == nil {
					return value.Null()
				}
				order := p.field(kryoElement{k: k}, members[0], orderedShape.Names[0])
				return value.Record(orderedShape, []value.Value{order, p.field(kryoParser{k: k, f: of.parse(version).parse}, members[1], orderedShape.Names[1])})
			},
		}
	}
}

// scalaTuple is the codec of tuples of boxed fields, which chill writes in their order
// and Kryo by their names.
func scalaTuple(n int) func(int) kryoBody {
	names := make([]string, n)
	fields := make([]kryoField, n)
	for i := range n {
		names[i], fields[i] = fmt.Sprintf("_%d", i+1), anyField
	}
	byName := slices.Sorted(slices.Values(names))
	return byVersion(kryoFields(names, fields...), kryoFields(byName, fields...))
}

// addScala adds the classes of this file.
func addScala(m map[string]func(version int) kryoBody) {
	chill := func(body func(int) kryoBody) func(int) kryoBody {
		return byVersion(body, func(int) kryoBody { return kryoBody{} })
	}
	for _, class := range []string{"Vector", "$colon$colon", "Nil$", "Set$Set1", "Set$Set2", "Set$Set3", "Set$Set4", "HashSet$HashTrieSet", "ListSet$Node", "Queue"} {
		m[immutable+class] = chill(scalaCollection(scalaElements))
	}
	for _, class := range []string{"BitSet", "HashSet", "LinkedHashSet", "ArrayBuffer", "ListBuffer", "Queue"} {
		m[mutable+class] = chill(scalaCollection(scalaElements))
	}
	for _, class := range []string{"Map$EmptyMap$", "Map$Map1", "Map$Map2", "Map$Map3", "Map$Map4", "HashMap$HashTrieMap", "ListMap$Node"} {
		m[immutable+class] = chill(scalaCollection(scalaEntries))
	}
	m[mutable+"HashMap"], m[mutable+"LinkedHashMap"] = chill(scalaCollection(scalaEntries)), chill(scalaCollection(scalaEntries))
	m[immutable+"TreeMap"], m[immutable+"TreeSet"] = chill(scalaSorted(scalaEntries)), chill(scalaSorted(scalaElements))
	m["scala.Some"], m["scala.util.Success"] = kryoFields([]string{"value"}, anyField), kryoFields([]string{"success"}, anyField)
	m["scala.util.Left"], m["scala.util.Right"] = kryoFields([]string{"left"}, anyField), kryoFields([]string{"right"}, anyField)
	for n := 1; n <= 22; n++ {
		m[fmt.Sprintf("scala.Tuple%d", n)] = scalaTuple(n)
	}
	numbers := map[rune]kryoField{'J': fixedField(longCodec), 'I': fixedField(intCodec), 'D': fixedField(doubleCodec)}
	for _, types := range specialized {
		var names []string
		var fields []kryoField
		for i, t := range types {
			names, fields = append(names, fmt.Sprintf("_%d", i+1)), append(fields, numbers[t])
		}
		m[fmt.Sprintf("scala.Tuple%d$mc%s$sp", len(types), types)] = chill(kryoFields(names, fields...))
	}
	for _, class := range []string{"$SeqWrapper", "$MapWrapper", "$JListWrapper", "$JMapWrapper"} {
		m[wrappers+class] = chill(kryoFields([]string{"$outer", "underlying"}, anyField, anyField))
	}
	m[wrappers+"$IterableWrapper"] = chill(kryoFields([]string{"underlying"}, anyField))
	m["scala.Symbol"] = chill(kryoString)
	m["scala.util.matching.Regex"] = chill(kryoString)
	m["scala.math.BigInt"] = chill(kryoFields([]string{"bigInteger"}, anyField))
}
