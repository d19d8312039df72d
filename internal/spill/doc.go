// Package spill keeps bytes that do not fit into memory in temporary files. A [Sorter]
// sorts records, a [File] holds bytes that are read again in any order.
//
//	s := spill.NewSorter(spill.Options{})
//	defer s.Close()
//	err := s.Add(key, value)
//	…
//	err = s.Each(ctx, func(r spill.Record) error { … })
//
// To count elements without storing them, use package tally.
package spill
