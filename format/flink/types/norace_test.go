//go:build !race

package types_test

const raced = false
