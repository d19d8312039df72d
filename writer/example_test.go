package writer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
	"github.com/vmihailenco/msgpack/v5"
)

// A program seals what it holds, and reads one element without the others.
func ExampleBuilder() {
	ctx := context.Background()
	stores := route.New(mem.New()) // local.New() for files

	if err := seal(ctx, stores); err != nil {
		log.Fatal(err)
	}

	snap, err := reader.Open(ctx, "state.spt", reader.Options{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	sub := snap.Operators[0].Subtasks[0]
	for _, st := range sub.Managed.States {
		fmt.Println(st.Mode, st.Name, st.Offsets.Len())
	}
	cur, err := native.Codec{}.Elements(ctx, snap.Source(), sub.Managed, "buffered", 700)
	if err != nil {
		log.Fatal(err)
	}
	defer cur.Close()
	e, err := cur.Next()
	if err != nil {
		log.Fatal(err)
	}
	var o order
	if err := msgpack.Unmarshal(e.Value, &o); err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Index, o)
	// Output:
	// list buffered 1000
	// union offsets 2
	// broadcast rules 1
	// 700 {700 customer-0}
}

type order struct {
	ID       int64  `msgpack:"id"`
	Customer string `msgpack:"customer"`
}

func seal(ctx context.Context, stores *route.Router) error {
	b, err := writer.NewBuilder(ctx, "state.spt", writer.BuilderOptions{Stores: stores, ID: 42})
	if err != nil {
		return err
	}
	defer b.Close() // without Seal, nothing is left
	op, err := b.Operator("orders", 1, 128)
	if err != nil {
		return err
	}
	sub, err := op.Subtask(0)
	if err != nil {
		return err
	}

	buffered, err := sub.List("buffered")
	if err != nil {
		return err
	}
	for i := range int64(1000) {
		if err := buffered.Add(order{ID: i, Customer: fmt.Sprintf("customer-%d", i%7)}); err != nil {
			return err
		}
	}
	offsets, err := sub.Union("offsets")
	if err != nil {
		return err
	}
	if err := offsets.Add([]any{"topic", 0, 4711}, []any{"topic", 1, 4712}); err != nil {
		return err
	}
	rules, err := sub.Broadcast("rules")
	if err != nil {
		return err
	}
	if err := rules.Put("limit", 1000); err != nil {
		return err
	}

	_, err = b.Seal(ctx)
	return err
}

// Keyed state: each key belongs to one subtask, and is found by its key group.
func ExampleSubtaskBuilder_Keyed() {
	ctx := context.Background()
	stores := route.New(mem.New())
	b, err := writer.NewBuilder(ctx, "counts.spt", writer.BuilderOptions{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	op, err := b.Operator("counter", 2, 128)
	if err != nil {
		log.Fatal(err)
	}
	counts := map[string]int{"ann": 3, "bob": 5, "eve": 8}
	for i := range int32(2) {
		sub, err := op.Subtask(i)
		if err != nil {
			log.Fatal(err)
		}
		keyed, err := sub.Keyed(native.KeyedState{Name: "count", Kind: native.KindValue})
		if err != nil {
			log.Fatal(err)
		}
		for user, n := range counts {
			if owner, err := op.SubtaskOf(user); err != nil || owner != i {
				continue
			}
			if err := keyed.Put("count", user, nil, n); err != nil {
				log.Fatal(err)
			}
		}
	}
	if _, err := b.Seal(ctx); err != nil {
		log.Fatal(err)
	}

	snap, err := reader.Open(ctx, "counts.spt", reader.Options{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer snap.Close()
	for _, sub := range snap.Operators[0].Subtasks {
		h := sub.ManagedKeyed.(*format.KeyGroups)
		cur, err := native.Entries(ctx, snap.Source(), h, h.Range.First)
		if err != nil {
			log.Fatal(err)
		}
		for e, err := range cur.All() {
			if err != nil {
				log.Fatal(err)
			}
			var user string
			var n int
			if err := msgpack.Unmarshal(e.Key, &user); err != nil {
				log.Fatal(err)
			}
			if err := msgpack.Unmarshal(e.Value, &n); err != nil {
				log.Fatal(err)
			}
			fmt.Printf("subtask %d, key group %d: %s[%s] = %d\n", sub.Index, e.KeyGroup, e.State, user, n)
		}
	}
	// Output:
	// subtask 0, key group 26: count[eve] = 8
	// subtask 0, key group 61: count[bob] = 5
	// subtask 1, key group 69: count[ann] = 3
}
