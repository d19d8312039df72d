//go:build !race

package testenv

// Raced reports that the race detector runs, which allocates by itself.
const Raced = false
