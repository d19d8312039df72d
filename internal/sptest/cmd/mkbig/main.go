// Command mkbig writes a large _metadata for measurements:
//
//	go run ./internal/sptest/cmd/mkbig -size 320 > _metadata
//	go run ./internal/sptest/cmd/mkbig -kind copies -subtasks 100 -elements 10000 > _metadata
//	go run ./internal/sptest/cmd/mkbig -kind small -operators 200 -subtasks 32 > _metadata
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"

	"github.com/savepoint-tools/spt/internal/sptest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mkbig:", err)
		os.Exit(2)
	}
}

func run() error {
	kind := flag.String("kind", "union", "union: inline union state, all different; copies: the same in every subtask; small: many small states")
	size := flag.Int64("size", 0, "megabytes, for union; determines the number of subtasks")
	operators := flag.Int("operators", 200, "operators, for small")
	subtasks := flag.Int("subtasks", 100, "subtasks of each operator")
	elements := flag.Int("elements", 10_000, "elements of each subtask, for union and copies")
	elementSize := flag.Int("element-size", 100, "bytes of each element")
	seed := flag.Uint64("seed", 1, "seed of the content")
	flag.Parse()

	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	var err error
	switch *kind {
	case "union", "copies":
		o := sptest.UnionOptions{Subtasks: *subtasks, Elements: *elements, ElementSize: *elementSize, Copies: *kind == "copies", Seed: *seed}
		if *size > 0 {
			o.Subtasks = sptest.UnionOfSize(*size << 20).Subtasks
			o.Elements, o.ElementSize = 10_000, 100
		}
		err = sptest.WriteUnion(out, o)
	case "small":
		err = sptest.SmallStates(out, sptest.SmallOptions{Operators: *operators, Subtasks: *subtasks, ElementSize: *elementSize, Seed: *seed})
	default:
		return fmt.Errorf("kind %q: one of union, copies, small", *kind)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}
