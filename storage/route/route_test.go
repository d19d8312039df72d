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
