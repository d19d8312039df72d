// Package columns writes rows of typed columns as Parquet.
//
//	w, err := columns.NewWriter(out, []columns.Column{{Name: "value", Type: t}})
//	err = w.Row([]value.Value{v})
//	err = w.Close()
//
// The types of columns are the types of state, package types. Objects, tuples and rows are
// groups (the fields of the latter f0, f1, …), lists and maps are lists and maps. What
// Parquet has no type for is text: numbers of more than 38 digits, and as JSON what
// depends on the value. All columns and all their parts but the keys of maps are
// optional.
//
// It holds the rows of one row group, compressed, in memory.
package columns
