// Package storetest tests stores. Run is the test suite that every
// storage.Storage must pass; Counting counts the requests to a store, and Failing
// injects faults. It is for tests only.
//
//	c := storetest.NewCounting(store)
//	inspect(ctx, c, "sp/_metadata")
//	if got := c.Count("read"); got != 1 { … }
package storetest
