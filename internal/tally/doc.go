// Package tally counts how often each of many elements occurs, in bounded memory
// and in time that grows with their number.
//
// An element is identified by a digest of 128 bits with random keys (package
// hash128). A [Counter] holds distinct elements in one table. When the table
// reaches its maximum size, its entries are written to a temporary file, ordered
// by the first bits of their digests, and counting continues with an empty table.
// At the end, the entries of each range of digests are merged: the file is read
// once.
//
//	c := tally.New(tally.Options{})
//	defer c.Close()
//	for i, p := range elements {
//		err := c.Add(tally.Element{Digest: h.Sum(p), Number: int64(i), Size: len(p)})
//		…
//	}
//	err := c.Each(func(e *tally.Entry) error { … })
//
// It is used to prune union state, by diff and for the statistics of cat. It does
// not store elements, only their counts.
package tally
