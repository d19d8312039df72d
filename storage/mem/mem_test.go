package mem_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
)

// TestZeroValue: a Store need not be made by New.
func TestZeroValue(t *testing.T) {
	var s mem.Store
	w, err := s.Create(t.Context(), "x", storage.CreateOptions{IfAbsent: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "data"); err != nil {
		t.Fatal(err)
	}
	if info, err := w.Commit(t.Context()); err != nil || info.Size != 4 {
		t.Errorf("%+v, %v", info, err)
	}
}

// A program keeps its state in memory, for a test, and reads it again.
func Example() {
	ctx := context.Background()
	store := &mem.Store{}
	stores := route.New(store)
	b, err := writer.NewBuilder(ctx, "state.spt", &writer.BuilderOptions{Stores: stores})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close() //nolint:errcheck // Seal returns the first error
	_ = b.Operator("counter", 1, 128).Subtask(0).List("counts").Add(7, 11)
	if _, err := b.Seal(ctx); err != nil {
		fmt.Println(err)
		return
	}
	snap, err := reader.Open(ctx, "state.spt", &reader.Options{Stores: stores})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer snap.Close() //nolint:errcheck // only read
	fmt.Println(snap.Operators[0].Label(), snap.Operators[0].Subtasks[0].Managed.Codec == format.CodecNative)
	// Output: counter true
}
