package writer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
)

// A savepoint for a job that never ran: its operator counts starts with a count for each
// user.
func ExampleFlinkBuilder() {
	ctx := context.Background()
	stores := route.New(mem.New()) // local.New() for files

	if err := create(ctx, stores); err != nil {
		log.Fatal(err)
	}

	snap, err := reader.Open(ctx, "bootstrap", &reader.Options{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			codec, err := snap.KeyedCodec(op, sub.ManagedKeyed)
			if err != nil {
				log.Fatal(err)
			}
			codecs, err := value.EntryCodecsOf(ctx, snap.Source(), codec, sub.ManagedKeyed)
			if err != nil {
				log.Fatal(err)
			}
			err = format.EachKeyedEntry(ctx, snap.Source(), codec, sub.ManagedKeyed, format.KeyedSelection{}, func(e format.KeyedEntry) error {
				key, err := value.ReadAll(codecs[e.State].Key, e.Key)
				if err != nil {
					return err
				}
				count, err := value.ReadAll(codecs[e.State].Value, e.Value)
				fmt.Printf("subtask %d, key group %d: %v %v\n", sub.Index, e.KeyGroup, key, count)
				return err
			})
			if err != nil {
				log.Fatal(err)
			}
		}
	}
	// Output:
	// subtask 0, key group 22: ben 12
	// subtask 1, key group 90: ada 3
}

// create writes the savepoint bootstrap.
func create(ctx context.Context, stores *route.Router) error {
	b, err := writer.NewFlinkBuilder(&writer.FlinkOptions{Release: flink.MustRelease("1.20")})
	if err != nil {
		return err
	}
	defer b.Close() // after the savepoint was written
	op, err := b.Operator(writer.FlinkOperator{UID: "counts", Parallelism: 2, MaxParallelism: 128, Key: "string"})
	if err != nil {
		return err
	}
	count, err := op.Keyed(writer.FlinkState{Name: "count", Kind: "value", Type: "long"})
	if err != nil {
		return err
	}
	for user, n := range map[string]int64{"ada": 3, "ben": 12} {
		if err := count.Add(writer.FlinkEntry{Key: value.String(user), Value: value.Int(n)}); err != nil {
			return err
		}
	}
	view, err := b.View(ctx)
	if err != nil {
		return err
	}
	_, err = writer.Write(ctx, view, "bootstrap", &writer.Options{Stores: stores})
	return err
}
