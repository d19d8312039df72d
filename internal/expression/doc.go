// Package expression compiles and evaluates the conditions that users write, such as
//
//	state == "offsets" and value[1] % 2 == 0
//
// over values of snapshots. docs/expressions.md describes the language. Integers of any
// size and decimals are exact; what does not fit the types of the names is an error of
// Compile, before anything is read.
//
//	names := []expression.Name{{Name: "size", Type: expression.Int}}
//	p, err := expression.Compile("size > 1024", names)
//	vars := expression.Vars{Values: make([]value.Value, len(names))}
//	vars.Values[0] = value.Int(2048)
//	holds, err := p.Eval(&vars)
//
// The length, the nesting and the work of an expression are bounded. It has no effects:
// no files, no clock, no network.
package expression
