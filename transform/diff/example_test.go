package diff_test

import (
	"context"
	"fmt"
	"log"

	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform/diff"
	"github.com/savepoint-tools/spt/writer"
)

// Two snapshots are compared.
func ExampleSavepoints() {
	ctx := context.Background()
	stores := route.New(mem.New()) // local.New() for files
	for name, offsets := range map[string][]any{"monday.spt": {"a:1", "b:7"}, "tuesday.spt": {"a:1", "b:9", "c:2"}} {
		b, err := writer.NewBuilder(ctx, name, &writer.BuilderOptions{Stores: stores})
		if err != nil {
			log.Fatal(err)
		}
		b.Operator("reader", 1, 128).Subtask(0).List("offsets").Add(offsets...)
		if _, err := b.Seal(ctx); err != nil {
			log.Fatal(err)
		}
	}
	var snaps [2]*reader.Snapshot
	for i, name := range []string{"monday.spt", "tuesday.spt"} {
		snap, err := reader.Open(ctx, name, &reader.Options{Stores: stores})
		if err != nil {
			log.Fatal(err)
		}
		defer snap.Close()
		snaps[i] = snap
	}

	result, err := diff.Savepoints(ctx, snaps[0].View(), snaps[1].View(), diff.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range result.Differences {
		fmt.Printf("%s of %s/%s: %s\n", d.Kind, d.Operator.Operator().UID, d.State.State().Name, d.Text)
	}
	// Output:
	// elements of reader/offsets: elements: 2 added, 1 removed
}
