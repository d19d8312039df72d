package route_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

func TestResolve(t *testing.T) {
	here, there := local.New(), mem.New()
	r := route.New(here)
	r.Add("s3", func(_ context.Context, uri string) (storage.Storage, string, error) {
		return there, strings.TrimPrefix(uri, "s3://"), nil
	})
	for uri, want := range map[string]string{
		"sp": "sp", "/data/sp": "/data/sp", "./a:b": "./a:b", "a/b:c": "a/b:c", "x:": "x:",
		"file:/data/sp": "/data/sp", "file:///data/sp": "/data/sp", "file://localhost/data/sp": "/data/sp", "FILE:/data": "/data", "file:rel/x": "rel/x",
		"file:/data/100%25": "/data/100%25", // Flink encodes nothing
		"file:/C:/x":        "C:/x", "file:///C:/x": "C:/x", "file:/1:/x": "/1:/x", `C:\x`: `C:\x`, "C:/x": "C:/x",
	} {
		if s, name, err := r.Resolve(context.Background(), uri); err != nil || s != storage.Storage(here) || name != want {
			t.Errorf("%q: %q, %v; want %q", uri, name, err, want)
		}
	}
	if s, name, err := r.Resolve(context.Background(), "s3://b/x"); err != nil || s != storage.Storage(there) || name != "b/x" {
		t.Errorf("%q, %v", name, err)
	}
	for _, uri := range []string{"gs://b/x", "hdfs://user:secret@n/x", "a b:x"} {
		_, _, err := r.Resolve(context.Background(), uri)
		if !errors.Is(err, storage.ErrUnsupported) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "file, s3") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

func TestSplit(t *testing.T) {
	for uri, want := range map[string][2]string{
		"s3://b/x": {"s3", "//b/x"}, "S3A:x": {"s3a", "x"}, "/a:b": {"", "/a:b"}, `a\b:c`: {"", `a\b:c`}, "C:x": {"", "C:x"}, ":x": {"", ":x"}, "": {"", ""},
	} {
		if scheme, rest := route.Split(uri); scheme != want[0] || rest != want[1] {
			t.Errorf("%q: %q, %q", uri, scheme, rest)
		}
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, dir, base string }{
		{"a/b", "a", "b"}, {"a/b/c", "a/b", "c"}, {"b", "", "b"}, {"/b", "/", "b"}, {"./b", ".", "b"}, {`a\b`, "", `a\b`}, {`C:\a\b`, `C:\a`, "b"}, {`\\host\share\b`, `\\host\share`, "b"}, {`a:b\c`, `a:b`, "c"},
		{"1:/x", "1:", "x"}, {`1:\x`, "", `1:\x`},
	} {
		if dir, base := route.Dir(tt.name), route.Base(tt.name); dir != tt.dir || base != tt.base {
			t.Errorf("%q: %q and %q, want %q and %q", tt.name, dir, base, tt.dir, tt.base)
		}
	}
	for _, tt := range []struct{ dir, name, want string }{
		{"", "x", "x"}, {".", "x", "x"}, {"a", "x", "a/x"}, {"a/", "x", "a/x"}, {"/", "x", "/x"}, {`C:\`, "x", `C:\x`}, {`C:\a`, "x", `C:\a/x`}, {`a\`, "x", `a\/x`},
	} {
		if got := route.Join(tt.dir, tt.name); got != tt.want {
			t.Errorf("%q and %q: %q, want %q", tt.dir, tt.name, got, tt.want)
		}
	}
	for name, want := range map[string]string{
		"sp": "sp", "sp/": "sp", "sp//": "sp", "/": "/", "//": "/", "": "", "s3://b/": "s3://b", "file:/": "file:/", "file:///": "file:/", "C:/": "C:/", `C:\`: `C:\`, `C:\a\`: `C:\a`, `a\`: `a\`,
	} {
		if got := route.Clean(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
