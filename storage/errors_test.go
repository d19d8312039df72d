package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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
		"https://u:SECRET@h?a=SECRET/b@c": "https://h?…",
	} {
		got := (&storage.Error{Op: "read", Name: name, Err: storage.ErrNotExist}).Error()
		if got != "read "+want+": file does not exist" {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestClassify(t *testing.T) {
	wrap := func(err error) error {
		return fmt.Errorf("x: %w", &storage.Error{Op: "read", Name: "x", Err: err})
	}
	for err, want := range map[error]storage.Class{
		storage.ErrUnavailable:  storage.Transient,
		storage.ErrChanged:      storage.InputChanged,
		storage.ErrNotExist:     storage.Permanent,
		storage.ErrNoSpace:      storage.Permanent,
		io.ErrUnexpectedEOF:     storage.Permanent, // decoders say so of a file that is too short
		context.Canceled:        storage.Permanent,
		errors.New("of others"): storage.Permanent,
		errors.Join(storage.ErrUnavailable, context.DeadlineExceeded): storage.Permanent,
	} {
		if got := storage.Classify(wrap(err)); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestTempName(t *testing.T) {
	for _, name := range []string{"a/b/_metadata", "_metadata", "/x", "a/" + strings.Repeat("ä", 120)} {
		temp := storage.TempName(name)
		if !storage.IsTemp(temp) || !storage.IsTemp(temp+"/") || storage.IsTemp(name) || temp == storage.TempName(name) {
			t.Errorf("%s: %s", name, temp)
		}
		dir := name[:strings.LastIndex(name, "/")+1]
		base, ok := strings.CutPrefix(temp, dir+storage.TempPrefix)
		if !ok || strings.Contains(base, "/") || len(base) > 230 || !strings.HasPrefix(name[len(dir):], base[strings.Index(base, "-")+1:]) {
			t.Errorf("%s: %s", name, temp)
		}
	}
	if storage.IsTemp(".spt-tmp-1-x/y") {
		t.Error("a name in a temporary folder is not temporary itself")
	}
}

func TestAsideName(t *testing.T) {
	long := "a/" + strings.Repeat("ä", 120)
	for _, name := range []string{"a/b/sp", "sp", "/x", "a/.spt-tmp-000000000000-x", long} {
		aside := storage.AsideName(name)
		if !storage.AsideOf(aside, name) || !storage.AsideOf(aside+"/", name+"/") || storage.AsideOf(aside, name+"x") && name != long || storage.AsideOf(name, name) {
			t.Errorf("%s: %s", name, aside)
		}
		if _, ok := storage.IsAside(aside); !ok || !storage.IsOwn(aside) || storage.IsTemp(aside) || aside == storage.AsideName(name) {
			t.Errorf("%s: %s", name, aside)
		}
	}
	if base, ok := storage.IsAside("x/.spt-old-0123456789ab-sp-1"); base != "sp-1" || !ok {
		t.Errorf("%q, %v", base, ok)
	}
	// What only looks like ours is not.
	for _, name := range []string{".spt-tmp-", ".spt-tmp-x", ".spt-old-0123456789ab", ".spt-old-0123456789ab-", ".spt-tmp-0123456789zz-x", ".spt-tmp-0123456789abx", "spt-tmp-0123456789ab-x", ".spt-tmp-0123456789ab-x/y"} {
		if storage.IsOwn(name) {
			t.Errorf("%s is taken for ours", name)
		}
	}
}
