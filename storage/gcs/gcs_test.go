package gcs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
)

// noEnv is an empty environment.
func noEnv(string) string { return "" }

// open returns a store of a server.
func open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	o.Endpoint, o.Anonymous, o.Getenv = url, true, noEnv
	if o.pause == 0 {
		o.pause = time.Millisecond
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	for name, part := range map[string]int64{"one request": 0, "resumable": chunk} {
		t.Run(name, func(t *testing.T) {
			n := 0
			storetest.Run(t, func(t *testing.T) (storage.Storage, string) {
				n++
				return open(t, server.URL, Options{part: part}), fmt.Sprintf("gs://bucket/%s %d/", name, n)
			})
		})
	}
}

func TestResolve(t *testing.T) {
	s := open(t, "http://127.0.0.1:1", Options{})
	for uri, want := range map[string]string{
		"gs://b/a/b":           "gs://b/a/b",
		"GS://b/a//b%20c?x#y/": "gs://b/a//b%20c?x#y/",
		"gs://b":               "gs://b",
		"gs://b/":              "gs://b/",
		"gs:/b/x":              "",
		"gs://":                "",
		"gs:///x":              "",
		"gs://user@b/x":        "",
		"gs://Bucket/x":        "",
		"s3://b/x":             "",
	} {
		store, name, err := s.Resolve(context.Background(), uri)
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "expected gs://BUCKET/KEY")):
			t.Errorf("%s: %q, %v", uri, name, err)
		case want != "" && (err != nil || name != want || store != storage.Storage(s)):
			t.Errorf("%s: %q, %v, expected %q", uri, name, err, want)
		}
	}
}
