package format_test

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func TestMappings(t *testing.T) {
	for _, c := range []struct {
		old, new, uri, want string // "": it does not fit
	}{
		{"file:/a", "file:/b", "file:/a/x", "file:/b/x"},
		{"/a", "file:/b", "file:/a/x", "file:/b/x"},
		{"file:/a", "file:/b", "/a/x", "file:/b/x"},
		{"file:///a/", "/b/", "file:/a/x/", "/b/x/"},
		{"s3a://a", "gs://b", "s3://a/x", "gs://b/x"},
		{"file:/a/x", "file:/b/", "file:/a/x", "file:/b/"},
		{"file:/a", "", "file:/a/x", "/x"},
		{"/", "s3://b", "file:/a", "s3://b/a"},
		{"file:/a", "b", "file:/ab/x", ""},
		{"a", "b", "file:/a/x", ""},
		{"s3://", "/mnt/", "s3://b/x", "/mnt/b/x"},
		{"s3://", "gs://", "s3a://b/x", "gs://b/x"},
		{"s3://", "/mnt", "gs://b/x", ""},
	} {
		got, ok := (format.Mappings{{Old: c.old, New: c.new}}).Apply(c.uri)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s=%s of %s: %q, %t, want %q", c.old, c.new, c.uri, got, ok, c.want)
		}
	}
	// By what they mean, not by how they are spelled.
	ms := (format.Mappings{{Old: "file:///a", New: "1"}, {Old: "/a/b", New: "2"}})
	if got, _ := ms.Apply("file:/a/b/x"); got != "2/x" {
		t.Errorf("%s", got)
	}
}
