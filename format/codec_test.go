package format_test

import (
	"errors"
	"io"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// counted is a cursor of n elements in one reused buffer, then an error.
type counted struct {
	n, at  int64
	end    error
	buf    [1]byte
	closed int
}

func (c *counted) Next() (format.Element, error) {
	if c.at == c.n {
		return format.Element{}, c.end
	}
	c.buf[0] = byte(c.at)
	c.at++
	return format.Element{Index: c.at - 1, Value: c.buf[:]}, nil
}

func (c *counted) Ordered() bool { return true }
func (c *counted) Close() error  { c.closed++; return nil }

func TestAll(t *testing.T) {
	c := &counted{n: 5, end: io.EOF}
	var kept []format.Element
	for e, err := range format.All(c) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, e.Clone())
	}
	if len(kept) != 5 || c.closed != 1 {
		t.Errorf("%d elements, closed %d times", len(kept), c.closed)
	}
	for i, e := range kept {
		if e.Index != int64(i) || e.Value[0] != byte(i) {
			t.Errorf("element %d: %v", i, e)
		}
	}
	c = &counted{n: 2, end: errors.New("broken")}
	var errs []error
	for _, err := range format.All(c) {
		errs = append(errs, err)
	}
	if len(errs) != 3 || errs[2] != c.end || c.closed != 1 {
		t.Errorf("%v, closed %d times", errs, c.closed)
	}
	c = &counted{n: 5, end: io.EOF}
	for range format.All(c) {
		break
	}
	if c.at != 1 || c.closed != 1 {
		t.Errorf("left after %d, closed %d times", c.at, c.closed)
	}
}
