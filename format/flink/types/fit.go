package types

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/flink"
)

// Fit is how values that one serializer wrote go with another one.
type Fit int

// The fits, from good to bad.
const (
	// Fits: read as they are.
	Fits Fit = iota
	// Migrates: read by the old serializer and written by the new one. Keys,
	// namespaces and timers cannot be.
	Migrates
	// Unsure: code of the user decides, or a part that is not looked at.
	Unsure
	// FitsNot: Flink refuses, unless it does not notice.
	FitsNot
)

// Change is what became of a serializer.
type Change struct {
	Fit Fit
	// Why says what changed, and where inside, such as
	// `field "age": IntSerializer → LongSerializer`. "" where nothing did.
	Why string
	// Unnoticed: what does not fit is no more than other classes around parts
	// that fit, such as a list where an array was. Flink 1.20 to 2.3 compare the
	// parts alone and go on, and the job meets values of the old class.
	Unnoticed bool
}

// Compare tells how a job takes values that were written with one serializer
// where it has another now, by the rules of Flink's own serializers. Nothing is
// known of classes of users but whether anything changed.
func Compare(was, now *Snapshot) Change {
	was, now = original(was), original(now)
	switch {
	case was == nil || now == nil:
		return Change{Fit: Unsure, Why: "it is not described"}
	case was.Class == now.Class && bytes.Equal(was.Raw, now.Raw):
		return Change{}
	case was.Old || now.Old:
		first, _ := flink.Lifetime(func(f flink.Facts) bool { return f.Snapshots.Has(wrapperNew) })
		return Change{Fit: Unsure, Why: fmt.Sprintf("its serializer snapshot is from before Flink %v", first)}
	case isTTL(was) != isTTL(now):
		return compareTTL(was, now)
	case was.Unknown || now.Unknown:
		what := was.Class + " in another form"
		if was.Class != now.Class {
			what = differ(was, now)
		}
		return Change{Fit: Unsure, Why: "by " + what + ", and their code decides"}
	case was.Class != now.Class:
		return Change{Fit: FitsNot, Why: differ(was, now), Unnoticed: unnoticed(was, now)}
	}
	switch simpleName(was.Class) {
	case "PojoSerializerSnapshot":
		return comparePojo(was, now)
	case "EnumSerializerSnapshot":
		return compareEnum(was, now)
	case "AvroSerializerSnapshot":
		return Change{Fit: Unsure, Why: "another Avro schema: Avro's rules decide"}
	case "RowDataSerializerSnapshot", "ExternalSerializerSnapshot", "ArrayDataSerializerSnapshot", "MapDataSerializerSnapshot",
		"SortedMapSerializerSnapshot", "ScalaEnumSerializerSnapshot", "DecimalSerializerSnapshot", "TimestampDataSerializerSnapshot",
		"BinaryRowDataSerializerSnapshot", "TraversableSerializerSnapshot":
		return worst(compareNested(was, now), Change{Fit: Unsure, Why: short(was) + " with other parameters"})
	case "NullableSerializerSnapshot":
		if !slices.Equal(was.numbers, now.numbers) {
			return Change{Fit: FitsNot, Why: fmt.Sprintf("nulls of %d bytes → %d", was.numbers, now.numbers)}
		}
	case "RowSerializerSnapshot":
		if was.Version != now.Version || was.mark != now.mark {
			return worst(compareNested(was, now), Change{Fit: Migrates, Why: "rows with and without a kind"})
		}
	}
	if was.Type != now.Type {
		return Change{Fit: FitsNot, Why: differ(was, now)}
	}
	return compareNested(was, now)
}

// unnoticed reports whether Flink takes one composite for another of the same parts.
// Only classes that have something to compare beside their parts look at what
// they are compared with.
func unnoticed(was, now *Snapshot) bool {
	a, _ := lookup(known, was.Class)
	b, _ := lookup(known, now.Class)
	if a.body != composite || b.body != composite || b.outer != "" && simpleName(now.Class) != "TupleSerializerSnapshot" || len(was.Nested) != len(now.Nested) {
		return false
	}
	for i := range was.Nested {
		if c := Compare(was.Nested[i], now.Nested[i]); c.Fit == Unsure || c.Fit == FitsNot && !c.Unnoticed {
			return false
		}
	}
	return true
}

// ttlAware is the class of serializers that can migrate to and from time to live.
const ttlAware = flinkPackage + "runtime.state.ttl.TtlAwareSerializerSnapshot"

// original is the snapshot itself where Flink 2 put it into one that knows of
// time to live.
func original(s *Snapshot) *Snapshot {
	for s != nil && simpleName(s.Class) == "TtlAwareSerializerSnapshot" && strings.HasPrefix(s.Class, flinkPackage) && len(s.Nested) == 1 {
		s = s.Nested[0]
	}
	return s
}

func isTTL(s *Snapshot) bool {
	return simpleName(s.Class) == "TtlSerializerSnapshot" && strings.HasPrefix(s.Class, flinkPackage) && len(s.Nested) == 2
}

// compareTTL is for values that got, or lost, a time to live.
func compareTTL(was, now *Snapshot) Change {
	why := "time to live was switched on"
	if isTTL(was) {
		was, why = was.Nested[1], "time to live was switched off"
	} else {
		now = now.Nested[1]
	}
	first, _, _ := flink.SerializerLifetime(ttlAware)
	return worst(Compare(was, now), Change{Fit: Unsure, Why: fmt.Sprintf("%s: Flink %v and later migrate it, older releases refuse it", why, first)})
}

// comparePojo: fields may come and go; those that stay have to fit.
func comparePojo(was, now *Snapshot) Change {
	if was.Type != now.Type {
		return Change{Fit: FitsNot, Why: differ(was, now)}
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
			c = worst(c, Change{Fit: Migrates, Why: fmt.Sprintf("field %q is gone", name)})
		default:
			c = worst(c, inside(fmt.Sprintf("field %q", name), Compare(a, b)))
		}
	}
	for _, name := range now.Names {
		if after[name] != nil && before[name] == nil {
			c = worst(c, Change{Fit: Migrates, Why: fmt.Sprintf("field %q is new", name)})
		}
	}
	for _, a := range was.Subclasses {
		for _, b := range now.Subclasses {
			if a != nil && b != nil && a.Type != "" && a.Type == b.Type {
				c = worst(c, inside(fmt.Sprintf("subclass %q", a.Type), Compare(a, b)))
			}
		}
	}
	return c
}

// compareEnum: constants may be added and change places, but not go.
func compareEnum(was, now *Snapshot) Change {
	if was.Type != now.Type {
		return Change{Fit: FitsNot, Why: differ(was, now)}
	}
	for _, name := range was.Names {
		if !slices.Contains(now.Names, name) {
			return Change{Fit: FitsNot, Why: fmt.Sprintf("constant %q of enum %q is gone", name, was.Type)}
		}
	}
	return Change{}
}

// compareNested compares what is inside, one by one.
func compareNested(was, now *Snapshot) Change {
	if len(was.Nested) != len(now.Nested) {
		return Change{Fit: FitsNot, Why: fmt.Sprintf("%s of %d → %d fields", short(was), len(was.Nested), len(now.Nested))}
	}
	var c Change
	for i := range was.Nested {
		c = worst(c, inside(nestedName(was, i), Compare(was.Nested[i], now.Nested[i])))
	}
	return c
}

// nestedName is what a nested value is to the one around it.
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

// worst is the change that decides; of equal ones the first, and what Flink
// notices before what it does not.
func worst(a, b Change) Change {
	if b.Fit > a.Fit || b.Fit == a.Fit && a.Unnoticed && !b.Unnoticed {
		return b
	}
	return a
}

func inside(where string, c Change) Change {
	if c.Fit != Fits {
		c.Why = where + ": " + c.Why
	}
	return c
}

func differ(was, now *Snapshot) string {
	a, b := short(was), short(now)
	if a == b { // of one name in two packages
		a, b = was.Class, now.Class
	}
	return a + " → " + b
}

// short is a name for a serializer: its class, and that of its values.
func short(s *Snapshot) string {
	name := strings.TrimSuffix(simpleName(s.Class), "Snapshot")
	if s.Type != "" {
		name += " of " + s.Type
	}
	return name
}
