package types

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/flink"
)

// Compatibility is the result of comparing the serializers of a state: Flink's
// TypeSerializerSchemaCompatibility.
type Compatibility int

// The compatibilities, from best to worst.
const (
	// CompatibleAsIs: the new serializer reads the values as they are.
	CompatibleAsIs Compatibility = iota
	// CompatibleAfterMigration: the old serializer reads the values and the new one
	// writes them again. Flink does not migrate keys, namespaces and timers.
	CompatibleAfterMigration
	// Undecided: user code decides, or a part is not compared.
	Undecided
	// Incompatible: Flink rejects it, unless the change is Unnoticed.
	Incompatible
)

var compatibilityNames = [...]string{"compatible as is", "compatible after migration", "undecided", "incompatible"}

// String returns the name: "compatible after migration".
func (c Compatibility) String() string { return compatibilityNames[c] }

// Difference is one part of two serializers that differs.
type Difference struct {
	// Path leads to the part: names of fields, [] for an element, [2] for a field without
	// a name, key and value: "items[].price". "" is the serializer itself.
	Path string
	Compatibility
	Why string // what changed: "IntSerializer → LongSerializer"
	// Unnoticed is as in [Change].
	Unnoticed bool
}

// Change is the difference between two serializers.
type Change struct {
	Compatibility
	// Why is what changed, with its path, such as `field "age": IntSerializer →
	// LongSerializer`; "" if nothing did.
	Why string
	// Unnoticed: only the classes around compatible parts differ, such as a list
	// instead of an array. Flink 1.20 to 2.3 compare the parts alone and continue,
	// and the job gets values of the old class.
	Unnoticed bool
	// Differences are all parts that differ, unless they are compatible as is, in the
	// order of the fields. The worst of them decides.
	Differences []Difference
}

// Compare returns the change from serializer was to serializer now, and whether a
// job with now can restore values that was wrote, by the rules of Flink's own
// serializers. For user classes it only determines whether anything changed.
func Compare(was, now *Snapshot) Change {
	c := compare(was, now)
	c.Differences = c.differences()
	return c
}

// CompareBest compares a serializer with several, as in a job whose subtasks differ, and
// returns the most compatible change.
func CompareBest(was *Snapshot, now []*Snapshot) Change {
	best := Change{Compatibility: Undecided, Why: "its serializer snapshot is unknown"}
	for i, b := range now {
		if c := Compare(was, b); i == 0 || c.Compatibility < best.Compatibility {
			best = c
		}
	}
	return best
}

func compare(was, now *Snapshot) Change {
	was, now = original(was), original(now)
	switch {
	case was == nil || now == nil:
		return Change{Compatibility: Undecided, Why: "its serializer snapshot is unknown"}
	case was.Class == now.Class && bytes.Equal(was.Raw, now.Raw):
		return Change{}
	case was.Old || now.Old:
		first, _ := flink.Lifetime(func(f flink.Facts) bool { return f.Snapshots.Has(wrapperNew) })
		return Change{Compatibility: Undecided, Why: fmt.Sprintf("its serializer snapshot is from before Flink %v", first)}
	case isTTL(was) != isTTL(now):
		return compareTTL(was, now)
	case was.Unknown || now.Unknown:
		what := was.Class + " with other content"
		if was.Class != now.Class {
			what = differ(was, now)
		}
		return Change{Compatibility: Undecided, Why: "by " + what + ", and their code decides"}
	case was.Class != now.Class:
		return Change{Compatibility: Incompatible, Why: differ(was, now), Unnoticed: unnoticed(was, now)}
	}
	switch simpleName(was.Class) {
	case "PojoSerializerSnapshot":
		return comparePojo(was, now)
	case "EnumSerializerSnapshot":
		return compareEnum(was, now)
	case "AvroSerializerSnapshot":
		return Change{Compatibility: Undecided, Why: "a different Avro schema: Avro's rules decide"}
	case "RowDataSerializerSnapshot", "ExternalSerializerSnapshot", "ArrayDataSerializerSnapshot", "MapDataSerializerSnapshot",
		"SortedMapSerializerSnapshot", "ScalaEnumSerializerSnapshot", "DecimalSerializerSnapshot", "TimestampDataSerializerSnapshot",
		"BinaryRowDataSerializerSnapshot", "TraversableSerializerSnapshot":
		return worst(compareNested(was, now), Change{Compatibility: Undecided, Why: short(was) + " with other parameters"})
	case "NullableSerializerSnapshot":
		if !slices.Equal(was.numbers, now.numbers) {
			return Change{Compatibility: Incompatible, Why: fmt.Sprintf("nulls of %d bytes → %d", was.numbers, now.numbers)}
		}
	case "RowSerializerSnapshot":
		if was.Version != now.Version || was.mark != now.mark {
			return worst(compareNested(was, now), Change{Compatibility: CompatibleAfterMigration, Why: "rows with and without a kind"})
		}
	}
	if was.Type != now.Type {
		return Change{Compatibility: Incompatible, Why: differ(was, now)}
	}
	return compareNested(was, now)
}

// unnoticed reports whether Flink accepts one composite in place of another with
// the same parts. Only classes that compare more than their parts check the other
// class.
func unnoticed(was, now *Snapshot) bool {
	a, _ := lookup(known, was.Class)
	b, _ := lookup(known, now.Class)
	if a.body != composite || b.body != composite || b.outer != "" && simpleName(now.Class) != "TupleSerializerSnapshot" || len(was.Nested) != len(now.Nested) {
		return false
	}
	for i := range was.Nested {
		if c := Compare(was.Nested[i], now.Nested[i]); c.Compatibility == Undecided || c.Compatibility == Incompatible && !c.Unnoticed {
			return false
		}
	}
	return true
}

// ttlAware is the class of serializers that can migrate to and from time to live.
const ttlAware = flinkPackage + "runtime.state.ttl.TtlAwareSerializerSnapshot"

// original unwraps a snapshot that Flink 2 wrapped in one that supports time to live.
func original(s *Snapshot) *Snapshot {
	for s != nil && simpleName(s.Class) == "TtlAwareSerializerSnapshot" && strings.HasPrefix(s.Class, flinkPackage) && len(s.Nested) == 1 {
		s = s.Nested[0]
	}
	return s
}

func isTTL(s *Snapshot) bool {
	return simpleName(s.Class) == "TtlSerializerSnapshot" && strings.HasPrefix(s.Class, flinkPackage) && len(s.Nested) == 2
}

// HasTTL reports whether the values have a time to live: they are a list of the time
// (ms) and the value.
func (s *Snapshot) HasTTL() bool {
	s = original(s)
	return s != nil && isTTL(s)
}

// compareTTL compares if time to live was switched on or off.
func compareTTL(was, now *Snapshot) Change {
	why := "time to live was switched on"
	if isTTL(was) {
		was, why = was.Nested[1], "time to live was switched off"
	} else {
		now = now.Nested[1]
	}
	first, _, _ := flink.SerializerLifetime(ttlAware)
	return worst(Compare(was, now), Change{Compatibility: Undecided, Why: fmt.Sprintf("%s: Flink %v and later migrate it, older releases reject it", why, first)})
}

// comparePojo compares POJOs: fields may be added and removed; the others must be
// compatible.
func comparePojo(was, now *Snapshot) Change {
	if was.Type != now.Type {
		return Change{Compatibility: Incompatible, Why: differ(was, now)}
	}
	fields := func(s *Snapshot) map[string]*Snapshot {
		m := map[string]*Snapshot{}
		for i, name := range s.Names {
			if i < len(s.Nested) && s.Nested[i] != nil {
				m[name] = s.Nested[i]
			}
		}
		return m
	}
	before, after := fields(was), fields(now)
	var c Change
	for _, name := range was.Names {
		switch a, b := before[name], after[name]; {
		case a == nil:
		case b == nil:
			c = worst(c, fieldChange(name, "removed"))
		default:
			c = worst(c, inside(fmt.Sprintf("field %q", name), fieldStep(name), Compare(a, b)))
		}
	}
	for _, name := range now.Names {
		if after[name] != nil && before[name] == nil {
			c = worst(c, fieldChange(name, "added"))
		}
	}
	for _, a := range was.Subclasses {
		for _, b := range now.Subclasses {
			if a != nil && b != nil && a.Type != "" && a.Type == b.Type {
				c = worst(c, inside(fmt.Sprintf("subclass %q", a.Type), "("+a.Type+")", Compare(a, b)))
			}
		}
	}
	return c
}

// compareEnum compares enums: constants may be added and reordered, but not removed.
func compareEnum(was, now *Snapshot) Change {
	if was.Type != now.Type {
		return Change{Compatibility: Incompatible, Why: differ(was, now)}
	}
	for _, name := range was.Names {
		if !slices.Contains(now.Names, name) {
			return Change{Compatibility: Incompatible, Why: fmt.Sprintf("constant %q of enum %q was removed", name, was.Type)}
		}
	}
	return Change{}
}

// compareNested compares the nested snapshots, one by one.
func compareNested(was, now *Snapshot) Change {
	if len(was.Nested) != len(now.Nested) {
		return Change{Compatibility: Incompatible, Why: fmt.Sprintf("%s of %d → %d fields", short(was), len(was.Nested), len(now.Nested))}
	}
	var c Change
	for i := range was.Nested {
		name := nestedName(was, i)
		c = worst(c, inside(name, nestedStep(name, i), Compare(was.Nested[i], now.Nested[i])))
	}
	return c
}

// nestedName returns the name of nested value i by its role in s.
func nestedName(s *Snapshot, i int) string {
	names := []string{}
	switch simpleName(s.Class) {
	case "MapSerializerSnapshot", "NullAwareMapSerializerSnapshot", "SortedMapSerializerSnapshot":
		names = []string{"key", "value"}
	case "TimerSerializerSnapshot":
		names = []string{"key", "namespace"}
	case "TtlSerializerSnapshot":
		names = []string{"time", "value"}
	case "JavaEitherSerializerSnapshot", "EitherSerializerSnapshot", "ScalaEitherSerializerSnapshot":
		names = []string{"left", "right"}
	}
	switch {
	case i < len(names):
		return names[i]
	case len(s.Nested) == 1:
		return "element"
	}
	return fmt.Sprintf("field %d", i)
}

// worst returns the less compatible change. If both are equal, it returns the one
// that Flink notices, or the first.
func worst(a, b Change) Change {
	all := slices.Concat(a.differences(), b.differences())
	if b.Compatibility > a.Compatibility || b.Compatibility == a.Compatibility && a.Unnoticed && !b.Unnoticed {
		a = b
	}
	a.Differences = all
	return a
}

// differences returns the differences of a change: itself, if it has no parts.
func (c Change) differences() []Difference {
	if c.Compatibility != CompatibleAsIs && len(c.Differences) == 0 {
		return []Difference{{Compatibility: c.Compatibility, Why: c.Why, Unnoticed: c.Unnoticed}}
	}
	return c.Differences
}

// fieldChange is the change of a POJO whose field was added or removed.
func fieldChange(name, what string) Change {
	return Change{Compatibility: CompatibleAfterMigration, Why: fmt.Sprintf("field %q was %s", name, what),
		Differences: []Difference{{Path: strings.TrimPrefix(fieldStep(name), "."), Compatibility: CompatibleAfterMigration, Why: what}}}
}

// fieldStep returns the step to a field in a path.
func fieldStep(name string) string { return "." + nameText(name) }

// nestedStep returns the step to nested value i, whose name by its role is name.
func nestedStep(name string, i int) string {
	switch {
	case name == "element":
		return "[]"
	case strings.HasPrefix(name, "field "):
		return fmt.Sprintf("[%d]", i)
	}
	return "." + name
}

// inside returns a change of a part as a change of what contains it.
func inside(where, step string, c Change) Change {
	if c.Compatibility == CompatibleAsIs {
		return c
	}
	c.Why = where + ": " + c.Why
	all := slices.Clone(c.Differences)
	for i := range all {
		if rest := all[i].Path; rest == "" || rest[0] == '[' || rest[0] == '(' {
			all[i].Path = step + rest
		} else {
			all[i].Path = step + "." + rest
		}
		all[i].Path = strings.TrimPrefix(all[i].Path, ".")
	}
	c.Differences = all
	return c
}

func differ(was, now *Snapshot) string {
	a, b := short(was), short(now)
	if a == b { // the same name in two packages
		a, b = was.Class, now.Class
	}
	return a + " → " + b
}

// short returns a short name of a serializer: its class, and the class of its
// values.
func short(s *Snapshot) string {
	name := strings.TrimSuffix(simpleName(s.Class), "Snapshot")
	if s.Type != "" {
		name += " of " + s.Type
	}
	return name
}
