package types_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// pickleVector is a pickle that Python wrote.
type pickleVector struct {
	protocol, json string
	bytes          []byte
}

// pickleVectors reads the output of testdata/pickles.py.
func pickleVectors(t testing.TB, text []byte) (all []pickleVector) {
	t.Helper()
	for line := range strings.Lines(string(text)) {
		protocol, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		pickle, json, ok := strings.Cut(rest, " ")
		p, err := hex.DecodeString(pickle)
		if err != nil || !ok {
			t.Fatalf("%.80s: %v", line, err)
		}
		all = append(all, pickleVector{protocol, json, p})
	}
	return all
}

// smallPickles are written by Python 3.11: python3 pickles.py small > pickles.txt.
func smallPickles(t testing.TB) []pickleVector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "pickles.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return pickleVectors(t, text)
}

// python runs testdata/pickles.py.
func python(t *testing.T, mode string, stdin []byte) []byte {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		testenv.Missing(t, "python3", err)
	}
	cmd := exec.CommandContext(t.Context(), path, filepath.Join("testdata", "pickles.py"), mode)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%v: %s", err, failed.Stderr)
		}
		t.Fatal(err)
	}
	return out
}

func checkPickles(t *testing.T, all []pickleVector) {
	t.Helper()
	c := parsed(t, "pickle")
	for _, x := range all {
		v, err := testenv.ReadBack(t, c, x.bytes)
		if got := string(v.AppendJSON(nil, nil, nil)); err != nil || got != x.json {
			t.Errorf("protocol %s: %.200s, %v; want %.200s", x.protocol, got, err, x.json)
		}
	}
}

// TestPickles reads pickles of Python, writes them to the same bytes, and cuts and flips
// them.
func TestPickles(t *testing.T) {
	all := smallPickles(t)
	checkPickles(t, all)
	if len(all) < 300 {
		t.Errorf("%d pickles", len(all))
	}
	c := parsed(t, "pickle")
	for _, x := range all {
		if len(x.bytes) > 300 {
			continue
		}
		for n := range x.bytes {
			if _, _, err := c.Read(x.bytes[:n]); !value.IsShort(err) {
				t.Errorf("%.80s cut to %d: %v", x.json, n, err)
			}
			if len(x.bytes) > 120 {
				continue
			}
			for bit := range 8 {
				q := bytes.Clone(x.bytes)
				q[n] ^= 1 << bit
				checkPickle(t, c, q)
			}
		}
	}
}

// checkPickle checks that the methods of a codec agree on bytes.
func checkPickle(t *testing.T, c value.Codec, p []byte) {
	t.Helper()
	if err := testenv.Agree(c, p); err != nil {
		t.Errorf("%x: %v", p, err)
	}
	if v, _, err := c.Read(p); err == nil {
		if err := testenv.AgreeJSON(c, v); err != nil {
			t.Errorf("%x: %v", p, err)
		}
	}
}

// TestPythonPickles: Python writes larger pickles to the bytes that are expected here,
// and reads what is written from JSON.
func TestPythonPickles(t *testing.T) {
	checkPickles(t, pickleVectors(t, python(t, "large", nil)))

	c := parsed(t, "pickle")
	var want, pickles []byte
	for _, x := range smallPickles(t) {
		v, err := value.FromJSON(c, []byte(x.json))
		if err != nil {
			t.Fatal(err)
		}
		if v.Kind() == value.KindBytes && v.Class() != "bytes" {
			continue // an object of a class that Python may not have
		}
		p, err := c.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		want = append(append(want, x.json...), '\n')
		pickles = append(hex.AppendEncode(pickles, p), '\n')
	}
	if got := python(t, "load", pickles); !bytes.Equal(got, want) {
		g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("Python reads %s, want %s", g[i], w[i])
			}
		}
		t.Errorf("%d lines, want %d", len(g), len(w))
	}
}

// TestPickleRefuses: values that Python does not have are not written.
func TestPickleRefuses(t *testing.T) {
	c := parsed(t, "pickle")
	for in, want := range map[string]string{
		`{"@class":"set","@value":[[1]]}`:                                           "a list cannot be a key",
		`{"@class":"dict","@value":[[{"a":1},2]]}`:                                  "a record cannot be a key",
		`{"@class":"dict","@value":[[{"@class":"tuple","@value":[[]]},2]]}`:         "a list cannot be a key",
		`{"@class":"datetime.date","@value":"0000-01-01"}`:                          "year 0",
		`{"@class":"datetime.time","@value":"00:00:00.000000001"}`:                  "microseconds",
		`{"@class":"datetime.timezone","@value":"CET"}`:                             `expected the time zone UTC, found "CET"`,
		`{"@class":"datetime.timedelta","days":0,"seconds":86400,"microseconds":0}`: "86400 seconds are not within 0 to 86399",
		`[{"@class":"__main__.Order","@value":{"base64":"gAJOLg=="}}]`:              `class "__main__.Order" is not part of a pickle`,
		`{"@class":"__main__.Order","@value":{"base64":"AA=="}}`:                    "not a pickle",
		strings.Repeat("[", 201) + strings.Repeat("]", 201):                         "nested more than 200 deep",
	} {
		v, err := value.FromJSON(c, []byte(in))
		if err == nil {
			_, err = c.Append(nil, v)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%.80s: %v, want %s", in, err, want)
		}
	}
	for in, want := range map[string]error{"": format.ErrTruncated, "\x80\x04": format.ErrTruncated, "(i0\n.": format.ErrCorrupt, "\x80\x06N.": format.ErrCorrupt, "\x80\x04\xff.": format.ErrCorrupt} {
		if _, _, err := c.Read([]byte(in)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", in, err, want)
		}
	}
}

// TestPickleExpansion: a short pickle does not become a text of gigabytes.
func TestPickleExpansion(t *testing.T) {
	p := append([]byte("\x80\x04]\x94(X\x00\x00\x10\x00"), bytes.Repeat([]byte{'x'}, 1<<20)...)
	p = append(append(append(p, 0x94), bytes.Repeat([]byte("h\x01"), 1<<20)...), "e."...)
	v, err := value.ReadAll(parsed(t, "pickle"), p)
	if err != nil || v.Class() != "pickle" || v.Kind() != value.KindBytes {
		t.Errorf("%v of class %q, %v", v.Kind(), v.Class(), err)
	}
}

// FuzzPickle: bytes are a pickle that is written to the same bytes, or an error.
func FuzzPickle(f *testing.F) {
	for _, x := range smallPickles(f) {
		f.Add(x.bytes)
	}
	c := parsed(f, "pickle")
	f.Fuzz(func(t *testing.T, p []byte) { checkPickle(t, c, p) })
}
