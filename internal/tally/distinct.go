package tally

import (
	"cmp"

	"github.com/savepoint-tools/spt/internal/hash128"
)

// Distinct returns the number of distinct strings with which each calls visit.
func Distinct(each func(visit func(p []byte) error) error, o Options) (n int64, err error) {
	h, c := hash128.New(), New(o)
	defer func() { err = cmp.Or(err, c.Close()) }()
	err = each(func(p []byte) error { return c.Add(Element{Digest: h.Sum(p)}) })
	if err != nil {
		return 0, err
	}
	err = c.Each(func(*Entry) error {
		n++
		return nil
	})
	return n, err
}
