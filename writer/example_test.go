package writer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
)

// A program seals what it holds, and reads it again.
func ExampleBuilder() {
	ctx := context.Background()
	stores := route.New(mem.New()) // local.New() for files

	if err := seal(ctx, stores); err != nil {
		log.Fatal(err)
	}

	snap, err := reader.Open(ctx, "state.spt", &reader.Options{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	for o, err := range native.List[order](ctx, snap.View(), "orders", "buffered") {
		if err != nil {
			log.Fatal(err)
		}
		if o.ID%400 == 0 {
			fmt.Println(o)
		}
	}
	rules, err := native.Broadcast[string, int](ctx, snap.View(), "orders", "rules")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(rules)
	// Output:
	// {0 customer-0}
	// {400 customer-1}
	// {800 customer-2}
	// map[limit:1000]
}

type order struct {
	ID       int64  `msgpack:"id"`
	Customer string `msgpack:"customer"`
}

// seal checks one error: the first one sticks, and is that of Seal.
func seal(ctx context.Context, stores *route.Router) error {
	b, err := writer.NewBuilder(ctx, "state.spt", &writer.BuilderOptions{Stores: stores, ID: 42})
	if err != nil {
		return err
	}
	defer b.Close() // without Seal, nothing is left
	sub := b.Operator("orders", 1, 128).Subtask(0)
	buffered := sub.List("buffered")
	for i := range int64(1000) {
		buffered.Add(order{ID: i, Customer: fmt.Sprintf("customer-%d", i%7)})
	}
	sub.Union("offsets").Add([]any{"topic", 0, 4711}, []any{"topic", 1, 4712})
	sub.Broadcast("rules").Put("limit", 1000)
	_, err = b.Seal(ctx)
	return err
}

// Keyed state: each key belongs to one subtask, and is found by its key group.
func ExampleSubtaskBuilder_Keyed() {
	ctx := context.Background()
	stores := route.New(mem.New())
	b, err := writer.NewBuilder(ctx, "counts.spt", &writer.BuilderOptions{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	op := b.Operator("counter", 2, 128)
	counts := map[string]int{"ann": 3, "bob": 5, "eve": 8}
	for i := range int32(2) {
		keyed := op.Subtask(i).Keyed(native.KeyedState{Name: "count", Kind: native.KindValue})
		for user, n := range counts {
			if owner, err := op.SubtaskOf(user); err != nil || owner != i {
				continue
			}
			keyed.Put("count", user, nil, n)
		}
	}
	if _, err := b.Seal(ctx); err != nil {
		log.Fatal(err)
	}

	snap, err := reader.Open(ctx, "counts.spt", &reader.Options{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	for e, err := range native.Keyed[string, int](ctx, snap.View(), "counter", "count") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("key group %d: %s = %d\n", e.KeyGroup, e.Key, e.Value)
	}
	n, found, err := native.Get[string, int](ctx, snap.View(), "counter", "count", "bob")
	fmt.Println(n, found, err)
	// Output:
	// key group 26: eve = 8
	// key group 61: bob = 5
	// key group 69: ann = 3
	// 5 true <nil>
}
