package assign_test

import (
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// Six elements in two subtasks, restored in three: contiguous blocks.
func ExampleOperator() {
	old := make([]*format.OperatorHandle, 2)
	for i, elements := range []int{3, 3} {
		old[i] = &format.OperatorHandle{
			States: []format.NamedState{{Name: format.NewText("counts"), Offsets: make(format.OffsetSlice, elements)}},
			Data:   &format.File{Path: format.NewText(fmt.Sprintf("s3://bucket/sp/part-%d", i))},
		}
	}
	plan, err := assign.Operator(old, 3, assign.Options{})
	if err != nil {
		panic(err)
	}
	for i, sub := range plan.Subtasks {
		for _, piece := range sub.Pieces {
			for _, s := range piece.Shares {
				fmt.Printf("subtask %d: %s [%d..%d] of old %d\n", i, s.Name, s.First, s.First+s.Count-1, piece.Old)
			}
		}
	}
	// Output:
	// subtask 0: counts [0..1] of old 0
	// subtask 1: counts [2..2] of old 0
	// subtask 1: counts [0..0] of old 1
	// subtask 2: counts [1..2] of old 1
}
