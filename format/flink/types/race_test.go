//go:build race

package types_test

// raced reports that the race detector runs, which allocates by itself.
const raced = true
