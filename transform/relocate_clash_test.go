package transform

import (
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// Two files that would have one name next to _metadata are refused and named.
func TestRelocateRelativeClash(t *testing.T) {
	file := func(path string) *format.OperatorHandle {
		return &format.OperatorHandle{Data: &format.File{Path: format.NewText(path), Length: 1}}
	}
	beside := &format.OperatorHandle{Data: &format.File{Path: format.NewText("x"), Relative: true, Length: 1}}
	for name, tt := range map[string]struct {
		handles []*format.OperatorHandle
		clash   []string
	}{
		"two folders":          {[]*format.OperatorHandle{file("file:/a/x"), file("file:/b/x")}, []string{"file:/a/x", "file:/b/x"}},
		"two operators":        {[]*format.OperatorHandle{file("file:/a/y"), file("s3://b/y")}, []string{"file:/a/y", "s3://b/y"}},
		"one is there already": {[]*format.OperatorHandle{beside, file("file:/a/x")}, []string{"file:/a/x", "x and"}},
		"the same, later":      {[]*format.OperatorHandle{file("file:/a/x"), beside}, []string{"file:/a/x", "and x "}},
		"one file, twice":      {[]*format.OperatorHandle{file("file:/a/x"), file("file:/a/x")}, nil},
		"names of their own":   {[]*format.OperatorHandle{file("file:/a/x"), file("file:/a/y")}, nil},
	} {
		sp := memoryInput(operator("one", tt.handles[0]), operator("two", tt.handles[1])).Savepoint
		_, _, err := RelocateAs(sp, RelocateOptions{Relative: true})
		var collision *CollisionError
		if is := errors.As(err, &collision); is != (tt.clash != nil) || !is && err != nil {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, want := range tt.clash {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not name %s", name, err, want)
			}
		}
	}
}
