// Package jsontext parses JSON without losing anything that matters to values: the
// digits of numbers, the order of members, and escaped halves of surrogate pairs.
//
//	n, err := jsontext.Parse(p)
package jsontext
