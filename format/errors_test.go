package format_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*format.Error{
		`part @0x1f3a, operator[3]/state "counts": value length 9 over the limit`: {File: "part", Offset: 0x1f3a, Path: `operator[3]/state "counts"`, Msg: "value length 9 over the limit", Err: format.ErrLimit},
		"@0x0: bad":                {Offset: 0, Msg: "bad", Err: format.ErrCorrupt},
		"@0x10, operator[0]: bad":  {Offset: 16, Path: "operator[0]", Msg: "bad"},
		"part: bad":                {File: "part", Offset: -1, Msg: "bad"},
		"part, operator[0]: bad":   {File: "part", Offset: -1, Path: "operator[0]", Msg: "bad"},
		"bad":                      {Offset: -1, Msg: "bad", Err: format.ErrCorrupt},
		"corrupt":                  {Offset: -1, Err: format.ErrCorrupt},
		"part: corrupt: cut short": {File: "part", Offset: -1, Err: format.ErrTruncated},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestErrorKinds(t *testing.T) {
	kinds := []error{format.ErrCorrupt, format.ErrTruncated, format.ErrUnsupported, format.ErrLimit, format.ErrChanged, format.ErrMissing, io.ErrUnexpectedEOF}
	also := map[error][]error{
		format.ErrTruncated: {format.ErrCorrupt, io.ErrUnexpectedEOF},
	}
	for _, kind := range kinds[:len(kinds)-1] {
		err := format.InFile(format.At(format.Errorf(kind, "%d of %d", 1, 2), "step %d", 3), "name")
		for _, other := range kinds {
			want := other == kind
			for _, a := range also[kind] {
				want = want || a == other
			}
			if errors.Is(err, other) != want {
				t.Errorf("%v is %v: %v", kind, other, !want)
			}
		}
		if err.Error() != "name, step 3: 1 of 2" {
			t.Error(err)
		}
	}
}

func TestErrorPath(t *testing.T) {
	base := format.Errorf(format.ErrCorrupt, "bad")
	base.Offset = 5
	one := format.At(base, "state %q", "a")
	two := format.At(one, "operator[%d]", 1)
	if two.Error() != `@0x5, operator[1]/state "a": bad` || base.Path != "" || one.Error() != `@0x5, state "a": bad` {
		t.Errorf("%v; %v; %v", two, one, base)
	}
	named := format.InFile(two, "first")
	if again := format.InFile(named, "second"); again != named || again.Error() != `first @0x5, operator[1]/state "a": bad` {
		t.Error(again)
	}
	if format.At(nil, "x") != nil || format.InFile(nil, "x") != nil {
		t.Error("nil became an error")
	}
	// Closing that did not fail changes nothing.
	if got := format.At(errors.Join(named, nil), "last"); got.Error() != `first @0x5, last/operator[1]/state "a": bad` {
		t.Error(got)
	}
	if got := format.At(errors.Join(named, context.Canceled), "last"); got.Error() != "last: "+named.Error()+"\n"+context.Canceled.Error() || !errors.Is(got, format.ErrCorrupt) {
		t.Error(got)
	}
	// Errors of others keep their text and what they are.
	for _, err := range []error{format.At(context.Canceled, "x"), format.InFile(context.Canceled, "x")} {
		if !errors.Is(err, context.Canceled) || err.Error() != "x: context canceled" {
			t.Error(err)
		}
	}
	// And so does one that wraps an error of ours.
	wrapped := format.InFile(format.At(fmt.Errorf("reading it again: %w", one), "operator[1]"), "file")
	if got := wrapped.Error(); got != `file, operator[1]: reading it again: @0x5, state "a": bad` || !errors.Is(wrapped, format.ErrCorrupt) {
		t.Error(got)
	}
}
