// Package tally counts how often each of many elements occurs, in bounded memory
// and in time that grows with their number.
//
// An element is known by a digest of 128 bits under keys drawn again in each run.
// A [Counter] holds distinct elements in one table. When the table has taken the
// memory it may take, its entries are written to a temporary file, ordered by the
// first bits of their digests, and counting goes on with an empty table. At the
// end the entries of each part of the digests are brought together: what was
// written is read once.
//
//	c := tally.New(tally.Options{})
//	defer c.Close()
//	for i, p := range elements {
//		err := c.Add(tally.Element{Digest: h.Sum(p), Number: int64(i), Size: len(p)})
//		…
//	}
//	err := c.Each(func(e *tally.Entry) error { … })
//
// Pruning union state, diff and the counts of cat use it. Of savepoints it knows
// the kinds of errors, and it is the one package above storage that makes files.
package tally
