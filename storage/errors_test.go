package storage_test

import (
	"testing"

	"github.com/savepoint-tools/spt/storage"
)

func TestErrorMessage(t *testing.T) {
	for name, want := range map[string]string{
		"dir/ä b":                         "dir/ä b",
		"":                                `""`,
		"a\x1b[31m":                       `"a\x1b[31m"`,
		"a\xff":                           `"a\xff"`,
		"s3://bucket/a@b":                 "s3://bucket/a@b",
		"s3://KEY:SE/CRET@bucket/a":       "s3://bucket/a",
		"http://h:80/a@b":                 "http://h:80/a@b",
		"s3://KEY:SECRET@bucket/a":        "s3://bucket/a",
		"s3://KEY:S@CRET@bucket":          "s3://bucket",
		"https://h/c/x?sig=SECRET":        "https://h/c/x?…",
		"abfss://c@a.dfs.x/y@z?sig=S":     "abfss://c@a.dfs.x/y@z?…",
		"wasb://c:SECRET@a.blob.x/y":      "wasb://a.blob.x/y",
		"s3://c@a/y":                      "s3://a/y",
		"https://u:SECRET@h?a=SECRET/b@c": "https://h?…",
	} {
		got := (&storage.Error{Op: "read", Name: name, Err: storage.ErrNotExist}).Error()
		if got != "read "+want+": file does not exist" {
			t.Errorf("%q: %s", name, got)
		}
	}
}
