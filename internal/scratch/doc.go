// Package scratch sorts records that do not fit into memory, with temporary files.
//
//	s := scratch.NewSorter(scratch.Options{Dir: dir})
//	defer s.Close()
//	err := s.Add(7, record) // in any order
//	c, err := s.Records(0, 99)
//	for {
//		key, record, err := c.Next() // in the order of keys, then as bytes
//		…
//	}
//
// Records are collected in memory. When they take too much of it, they are sorted and
// written as a run, and the runs are merged when they are read.
//
// It is the only package above storage that creates files.
package scratch
