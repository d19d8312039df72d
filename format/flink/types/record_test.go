package types_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// Snapshots of types are the bytes that Flink wrote for them.
func TestRecordedIsFlinks(t *testing.T) {
	found := map[string]bool{}
	of := map[string]string{
		"long": "", "string": "", "int": "", "double": "", "tuple2<string, long>": "", "tuple2<long, long>": "", "list<long>": "", "list<string>": "",
		"map<string, long>": "", "timer<string, VoidNamespace>": "", "bytes": "", "tuple2<string, int>": "",
		"pojo spt.oracle.Values$Item{id: long, count: int, name: string, flag: boolean}": "",
	}
	for _, dir := range testenv.KnownDirectories(t) {
		version := strings.SplitN(filepath.Base(dir), "-", 2)[0]
		release := flink.MustRelease(version)
		var files [][]byte
		err := filepath.WalkDir(filepath.Join(dir, "savepoint"), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			p, err := os.ReadFile(path)
			files = append(files, p)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for text := range of {
			s := recorded(t, text, release)
			for _, p := range files {
				found[text] = found[text] || bytes.Contains(p, s.AppendWrapped(nil))
			}
		}
	}
	for text := range of {
		if !found[text] {
			t.Errorf("%s: no savepoint of Flink has these bytes: %x", text, recorded(t, text, flink.MustRelease("1.20")).Raw)
		}
	}
}

func recorded(t *testing.T, text string, r flink.Release) *types.Snapshot {
	t.Helper()
	l := types.Language{}
	s, err := l.Parse(text)
	if err == nil {
		s, err = types.Recorded(s, r)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// A recorded snapshot is of the same type, and recording it again changes nothing.
func TestRecordedIsTheType(t *testing.T) {
	for _, text := range []string{
		"boolean", "byte", "short", "int", "long", "float", "double", "char", "string", "bigint", "bigdec", "date", "instant", "localdate", "localtime", "localdatetime", "void",
		"bytes", "long[]", "string[]", "list<int>", "map<string, list<int>>", "array<string>", "tuple3<int, string, tuple1<long>>", "row<int, string>", "row(0)<int>",
		"nullable<long>", "nullable(8)<long>", "either<int, string>", "enum com.acme.Color{RED, GREEN}", "pojo com.acme.Order{id: long, tags: list<string>}",
		"decimal(10,2)", "timestamp(3)", "linkedlist<int>", "timer<string, timewindow>", "timewindow", "array<pojo com.acme.P{x: int}>", "array<tuple2<int, int>>",
	} {
		for _, release := range []string{"1.15", "1.20", "2.3"} {
			s := recorded(t, text, flink.MustRelease(release))
			if got := types.TypeOf(s, types.Options{}).String(); printed(t, got) != printed(t, text) {
				t.Errorf("%s is recorded as %s", text, got)
			}
			again, err := types.Recorded(s, flink.MustRelease(release))
			if err != nil || !bytes.Equal(again.Raw, s.Raw) {
				t.Errorf("%s, recorded again: %v\n%x\n%x", text, err, again.Raw, s.Raw)
			}
		}
	}
}

// printed is the text of a type as it is printed.
func printed(t *testing.T, text string) string {
	t.Helper()
	l := types.Language{}
	s, err := l.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return types.TypeOf(s, types.Options{}).String()
}

// Fields of POJOs have the order of Flink: that of their names.
func TestRecordedPojo(t *testing.T) {
	s := recorded(t, "pojo com.acme.P{b: int, a: string}", flink.MustRelease("1.20"))
	if got := types.TypeOf(s, types.Options{}).String(); got != "pojo com.acme.P{a: string, b: int}" {
		t.Errorf("recorded as %s", got)
	}
}

func TestNotRecorded(t *testing.T) {
	for text, want := range map[string]string{
		"pojo{x: int}":       "the type must name its class",
		"enum{A}":            "the type must name its class",
		"json":               "not a type of Flink",
		"list<json>":         "not a type of Flink",
		"rowdata{a: int}":    "Java objects",
		"ttl<long>":          "time to live",
		"array<option<int>>": "class of the elements",
		"set<int>":           "Flink 1.20 does not have it",
		"list<pojo{x: int}>": "the type must name its class",
		"bytes<json>":        "not a type of Flink",
		"tuple" + "<" + strings.TrimSuffix(strings.Repeat("int,", 26), ",") + ">": "at most 25",
	} {
		l := types.Language{}
		s, err := l.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		_, err = types.Recorded(s, flink.MustRelease("1.20"))
		if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: expected an error with %q, found %v", text, want, err)
		}
	}
}

// A type that is recorded is read again as the same type, whatever it is.
func FuzzRecorded(f *testing.F) {
	for _, text := range []string{"long", "map<string, list<int>>", "pojo a.P{b: int, a: string}", "enum a.E{A}", "nullable(8)<long>", "row(0)<int>", "array<tuple2<int, int>>", "decimal(10,2)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := new(types.Language).Parse(text)
		if err != nil {
			return
		}
		r := flink.MustRelease("2.0")
		s, err = types.Recorded(s, r)
		if err != nil {
			return
		}
		again, n, err := types.SkipVersioned(s.Raw)
		if err != nil || n != len(s.Raw) {
			t.Fatalf("%q: %v after %d of %d bytes", text, err, n, len(s.Raw))
		}
		if twice, err := types.Recorded(again, r); err != nil || !bytes.Equal(twice.Raw, s.Raw) {
			t.Fatalf("%q, recorded again: %v", text, err)
		}
	})
}
