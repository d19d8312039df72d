// Package storetest tests stores. Run is the suite that every storage.Storage
// must pass; Counting counts what a piece of code asks of a store, and Failing
// makes a store fail on purpose. It is for tests only.
//
//	c := storetest.NewCounting(store)
//	inspect(ctx, c, "sp/_metadata")
//	if got := c.Count("read"); got != 1 { … }
package storetest
