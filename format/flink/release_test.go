package flink

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParseRelease(t *testing.T) {
	for s, want := range map[string]string{
		"1.3": "1.3", "1.20": "1.20", "2.0": "2.0", "2.3": "2.3", "1.20.4": "1.20", "2.0.0": "2.0", "1.9.10": "1.9",
	} {
		if got, err := ParseRelease(s); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "1.2", "1.21", "2.4", "3.0", "1.20.1.1", "1.20.x", "v1.20", "1.-3", "1.03", "1.20.01", "a.b", " 1.20", "0.9", "1.20."} {
		r, err := ParseRelease(s)
		if err == nil || !strings.Contains(err.Error(), "is not known; available: 1.3 to 1.20, 2.0 to 2.3") {
			t.Errorf("%q is %v, %v", s, r, err)
		}
	}
}

// TestReleases: 1.3 to 1.20 and 2.0 to 2.3, in order, and each with a complete row.
func TestReleases(t *testing.T) {
	var want []string
	for minor := 3; minor <= 20; minor++ {
		want = append(want, fmt.Sprintf("1.%d", minor))
	}
	want = append(want, "2.0", "2.1", "2.2", "2.3")
	var got []string
	for _, r := range Releases() {
		got = append(got, r.String())
		f := r.Facts()
		for _, c := range f.columns() {
			if v, ok := c.field.(*Versions); ok && *v == 0 && c.name != "channels" && c.name != "changelogs" {
				t.Errorf("release %v: none in column %s", r, c.name)
			}
		}
		// Flink reads every older version of _metadata that spt reads (spec
		// flink-metadata 3).
		for v := 2; v <= f.Metadata.Newest(); v++ {
			if !f.Metadata.Has(v) {
				t.Errorf("release %v does not read _metadata %d", r, v)
			}
		}
		if n := serializerChanges(r); n != f.serializers {
			t.Errorf("release %v: its row says that %d serializers are new or gone, serializerLifetimes says %d", r, f.serializers, n)
		}
	}
	if !slices.Equal(got, want) || Oldest() != MustRelease("1.3") || Latest() != MustRelease("2.3") {
		t.Errorf("%q", got)
	}
	if latest := Latest(); Release(0).Facts() != latest.Facts() || Release(0).String() != "" {
		t.Error("no release is not taken for the latest")
	}
}

func serializerChanges(r Release) (n int) {
	for _, l := range serializerLifetimes {
		if l.from == r.String() || r > Oldest() && l.until == (r-1).String() {
			n++
		}
	}
	return n
}

// TestNewRelease: a row of Flink 2.4 is all that is to be added, and one that
// lacks something is refused with its name.
func TestNewRelease(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	last := strings.Fields(lines[len(lines)-1])
	row := func(change func(cells []string) []string) string {
		cells := slices.Clone(last)
		cells[0] = "2.4"
		return table + strings.Join(change(cells), " ") + "\n"
	}
	all, err := parseTable(row(func(c []string) []string { return c }))
	if err != nil || len(all) != len(rows)+1 || all[len(rows)].facts != rows[len(rows)-1].facts || all[len(rows)].minor != 4 {
		t.Errorf("%v", err)
	}
	for _, x := range []struct {
		change func(cells []string) []string
		want   string
	}{
		{func(c []string) []string { return c[:1] }, "release 2.4: empty column metadata, operator, keyed, handles, streams, snapshots, channels, changelogs, finished, legacy, kryo, rocksdb, prepend, keep, fill, serializers"},
		{func(c []string) []string { return c[:len(c)-1] }, "release 2.4: empty column serializers"},
		{func(c []string) []string { c[11] = "?"; return c }, "release 2.4: empty column kryo"},
		{func(c []string) []string { c[9] = "maybe"; return c }, `release 2.4: column finished: expected yes or no, found "maybe"`},
		{func(c []string) []string { c[1] = "7-2"; return c }, `release 2.4: column metadata: expected versions such as 1-3,6, found "7-2"`},
		{func(c []string) []string { return append(c, "x") }, "release 2.4: expected 17 cells, found 18"},
		{func(c []string) []string { c[0] = "2.3"; return c }, "release 2.3: not after the row above it"},
		{func(c []string) []string { c[0] = "two"; return c }, "release two: expected a release such as 1.20"},
	} {
		if _, err := parseTable(row(x.change)); err == nil || err.Error() != x.want {
			t.Errorf("%v, expected %s", err, x.want)
		}
	}
	if _, err := parseTable("release metadata\n1.3 2"); err == nil || err.Error() != "release 1.3: expected column operator in the head of the table" {
		t.Errorf("%v", err)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string][]int{"-": nil, "5": {5}, "1-3,6": {1, 2, 3, 6}, "3,5,7-10": {3, 5, 7, 8, 9, 10}, "63": {63}} {
		s, err := parseVersions(text)
		var got []int
		for v := -1; v < 70; v++ {
			if s.Has(v) {
				got = append(got, v)
			}
		}
		if err != nil || !slices.Equal(got, want) || len(want) > 0 && s.Newest() != want[len(want)-1] || len(want) == 0 && s.Newest() != 0 {
			t.Errorf("%s: %v, newest %d, %v", text, got, s.Newest(), err)
		}
	}
	for _, text := range []string{"", "0", "64", "a", "3-1", "1--3", "1,", "-1"} {
		if s, err := parseVersions(text); err == nil {
			t.Errorf("%q: %b", text, s)
		}
	}
}

// TestLifetime: spec flink-metadata 3.1 and 4.4, flink-operator-state A3.
func TestLifetime(t *testing.T) {
	for _, x := range []struct {
		name        string
		has         func(Facts) bool
		first, last string
	}{
		{"finished", func(f Facts) bool { return f.Finished }, "1.14", ""},
		{"merged files", func(f Facts) bool { return f.Streams.Has(15) }, "1.20", ""},
		{"Kryo 2", func(f Facts) bool { return f.Kryo.Has(2) }, "1.3", "1.20"},
		{"operator state 4", func(f Facts) bool { return f.OperatorState.Has(4) }, "1.6", "1.16"},
		{"keyed state 6", func(f Facts) bool { return f.KeyedState.Has(6) }, "1.7", ""},
		{"short changelogs", func(f Facts) bool { return f.Changelogs.Has(1) }, "1.14", "1.14"},
		{"nothing", func(Facts) bool { return false }, "", ""},
	} {
		if first, last := Lifetime(x.has); first.String() != x.first || last.String() != x.last {
			t.Errorf("%s: %v to %v, expected %s to %s", x.name, first, last, x.first, x.last)
		}
	}
	// Spec flink-metadata 3.
	for v, want := range map[int]string{1: "-", 2: "1.3-1.10", 3: "1.11-1.15", 4: "1.16-1.20", 5: "2.0-2.0", 6: "2.1-2.3", 7: "-"} {
		if first, last := WritersOf(v); first.String()+"-"+last.String() != want {
			t.Errorf("_metadata %d: %v to %v, expected %s", v, first, last, want)
		}
	}
}

// TestSerializers: what the jars of Flink 1.20, 2.0 and 2.3 have.
func TestSerializers(t *testing.T) {
	if !slices.IsSorted(serializerClasses) {
		t.Error("serializerClasses are not sorted")
	}
	const base = "org.apache.flink.api.common.typeutils.base."
	for _, x := range []struct {
		class       string
		ok          bool
		first, last string
	}{
		{base + "LongSerializer$LongSerializerSnapshot", false, "", ""},
		{base + "BitmapSerializer$BitmapSerializerSnapshot", true, "2.3", ""},
		{base + "SetSerializerSnapshot", true, "2.0", ""},
		{"org.apache.flink.api.scala.typeutils.ScalaOptionSerializerSnapshot", true, "1.3", "1.20"},
		{"org.apache.flink.table.api.typeutils.ScalaOptionSerializerSnapshot", true, "2.0", ""},
		{"com.acme.api.scala.Snapshot", false, "", ""},
	} {
		first, last, ok := SerializerLifetime(x.class)
		if ok != x.ok || first.String() != x.first || last.String() != x.last {
			t.Errorf("%s: %v to %v, %v", x.class, first, last, ok)
		}
		if near, unknown := UnknownSerializer(x.class); unknown {
			t.Errorf("%s is unknown, near %s", x.class, near)
		}
	}
	for class, near := range map[string]string{
		base + "LangSerializer$LongSerializerSnapshot":              base + "LongSerializer$LongSerializerSnapshot",
		base + "BitmapSerializer$BitmapSerializerSnapshov":          base + "BitmapSerializer$BitmapSerializerSnapshot",
		base + "BrandNewSerializerSnapshot":                         "",
		"org.apache.flinc.table.dataview.MapViewSerializerSnapshot": "org.apache.flink.table.dataview.MapViewSerializerSnapshot",
	} {
		if got, unknown := UnknownSerializer(class); !unknown || got != near {
			t.Errorf("%s: %q, %v", class, got, unknown)
		}
	}
}
