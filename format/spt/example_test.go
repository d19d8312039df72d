package spt_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
)

// State of one's own, step by step: a stream with its elements' offsets, then
// the savepoint that names them.
func ExampleWriter() {
	ctx := context.Background()
	var file bytes.Buffer
	w, err := spt.NewWriter(&file, spt.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close() //nolint:errcheck // Seal says whether all went well

	s, err := w.Stream(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	offsets := w.Offsets()
	at := int64(0)
	s.MustCut() // a named state starts
	for _, element := range []string{"apple", "pear", "fig"} {
		s.MayCut()
		offsets.Add(at)          //nolint:errcheck // sticky: Close gives it
		s.Write([]byte(element)) //nolint:errcheck // sticky: Close gives it
		at += int64(len(element))
	}
	data, err := s.Close()
	if err != nil {
		fmt.Println(err)
		return
	}
	positions, err := offsets.Close()
	if err != nil {
		fmt.Println(err)
		return
	}
	sp := &format.Savepoint{ID: 1, Operators: []*format.Operator{{
		ID: format.OperatorIDOf("basket"), Parallelism: 1, MaxParallelism: 128,
		Subtasks: []*format.Subtask{{Managed: &format.OperatorHandle{
			Codec:  format.CodecNative,
			States: []format.NamedState{{Name: format.NewText("fruit"), Offsets: positions}},
			Data:   data,
		}}},
	}}}
	if _, err := w.Seal(ctx, sp); err != nil {
		fmt.Println(err)
		return
	}

	f, err := spt.Open(ctx, &memory{p: file.Bytes()}, int64(file.Len()), format.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := f.Savepoint().Operators[0].Subtasks[0].Managed
	second, err := format.OffsetAt(ctx, h.States[0].Offsets, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := make([]byte, 4)
	if _, err := f.ReadAt(ctx, h.Data, p, second); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s of %d elements\n", p, h.States[0].Offsets.Len())
	// Output: pear of 3 elements
}
