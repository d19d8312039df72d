package objpath_test

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/objpath"
)

func TestSplit(t *testing.T) {
	for uri, want := range map[string][2]string{
		"s3://b/x": {"s3", "//b/x"}, "S3A:x": {"s3a", "x"}, "/a:b": {"", "/a:b"}, `a\b:c`: {"", `a\b:c`}, "C:x": {"", "C:x"}, ":x": {"", ":x"}, "": {"", ""},
	} {
		if scheme, rest := objpath.Split(uri); scheme != want[0] || rest != want[1] {
			t.Errorf("%q: %q, %q", uri, scheme, rest)
		}
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, dir, base string }{
		{"a/b", "a", "b"}, {"a/b/c", "a/b", "c"}, {"b", "", "b"}, {"/b", "/", "b"}, {"./b", ".", "b"}, {`a\b`, "", `a\b`}, {`C:\a\b`, `C:\a`, "b"}, {`\\host\share\b`, `\\host\share`, "b"}, {`a:b\c`, `a:b`, "c"},
		{"s3://b/x", "s3://b", "x"}, {"s3://b", "", "b"}, {"s3://b/a//x", "s3://b/a/", "x"}, {"1:/x", "1:", "x"}, {`1:\x`, "", `1:\x`},
	} {
		if dir, base := objpath.Dir(tt.name), objpath.Base(tt.name); dir != tt.dir || base != tt.base {
			t.Errorf("%q: %q and %q, want %q and %q", tt.name, dir, base, tt.dir, tt.base)
		}
	}
	for _, tt := range []struct{ dir, name, want string }{
		{"", "x", "x"}, {".", "x", "x"}, {"a", "x", "a/x"}, {"a/", "x", "a/x"}, {"/", "x", "/x"}, {`C:\`, "x", `C:\x`}, {`C:\a`, "x", `C:\a/x`}, {`a\`, "x", `a\/x`},
	} {
		if got := objpath.Join(tt.dir, tt.name); got != tt.want {
			t.Errorf("%q and %q: %q, want %q", tt.dir, tt.name, got, tt.want)
		}
	}
	for dir, want := range map[string]string{"": "", ".": "", "a": "a/", "a/": "a/", "/": "/", "./": "./", ".a/": ".a/", ".a": ".a/", "s3://b": "s3://b/", "s3://b/a": "s3://b/a/"} {
		if got := objpath.Prefix(dir); got != want {
			t.Errorf("%q: %q, want %q", dir, got, want)
		}
	}
	for uri, want := range map[string]string{
		"s3://b/_entropy_/ck/job": "s3://b/ck/job", "s3://b/ck/_entropy_": "s3://b/ck/", "s3://b/a_entropy_b/c": "s3://b/ab/c", "s3://b/x": "s3://b/x",
		"/d/_entropy_/x": "/d/_entropy_/x", "file:///d/_entropy_/x": "file:///d/_entropy_/x",
	} {
		if got := objpath.WithoutEntropy(uri); got != want {
			t.Errorf("%q: %q, want %q", uri, got, want)
		}
	}
	for name, want := range map[string]string{
		"sp": "sp", "sp/": "sp", "sp//": "sp", "/": "/", "//": "/", "": "", "s3://b/": "s3://b", "file:/": "file:/", "file:///": "file:/", "C:/": "C:/", `C:\`: `C:\`, `C:\a\`: `C:\a`, `a\`: `a\`,
	} {
		if got := objpath.Clean(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestWithoutRandom(t *testing.T) {
	for uri, want := range map[string]string{
		"s3://b/x9Zz/ck/a": "s3://b/ck/a", "s3://b/ck/data/a1b2/x": "s3://b/ck/a1b2/x s3://b/ck/data/x",
		"s3://x9Zz/a": "", "s3://b/x9Zz": "", "s3://b/x-Zz/a": "", "/d/x9Zz/a": "", "s3://b/abcde/a": "",
	} {
		if got := strings.Join(objpath.WithoutRandom(uri), " "); got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}
