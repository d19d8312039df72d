package transform_test

import (
	"context"
	"fmt"
	"log"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// A buffering sink with 20 elements goes from two subtasks to four: the first
// two take what subtask 0 had, the others what subtask 1 had. Of union state
// everyone gets everything.
func ExampleSimulate() {
	plan, err := transform.Simulate(context.Background(), 20, 2, 4, transform.StrategyFlink)
	if err != nil {
		log.Fatal(err)
	}
	for _, state := range plan.Operators[0].States {
		fmt.Println(state.Name)
		for i, sub := range state.Subtasks {
			fmt.Printf("  subtask %d gets %d:", i, sub.Elements)
			for _, s := range sub.Sources {
				fmt.Printf(" old %d [%d..%d]", s.Old, s.First, s.First+s.Count-1)
			}
			fmt.Println()
		}
	}
	// Output:
	// list
	//   subtask 0 gets 5: old 0 [0..4]
	//   subtask 1 gets 5: old 0 [5..9]
	//   subtask 2 gets 5: old 1 [0..4]
	//   subtask 3 gets 5: old 1 [5..9]
	// union
	//   subtask 0 gets 20: old 0 [0..9] old 1 [0..9]
	//   subtask 1 gets 20: old 0 [0..9] old 1 [0..9]
	//   subtask 2 gets 20: old 0 [0..9] old 1 [0..9]
	//   subtask 3 gets 20: old 0 [0..9] old 1 [0..9]
}

// A snapshot is planned for another parallelism, looked at, and written.
func ExamplePlanRescale() {
	ctx := context.Background()
	stores := route.New(mem.New()) // local.New() for files
	seal(ctx, stores, 2)
	snap := open(ctx, stores, "in.spt")
	defer snap.Close()

	plan, err := transform.PlanRescale(ctx, snap.View(), transform.RescaleOptions{To: 3, Operators: format.Selector{"reader"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, op := range plan.Operators {
		for _, state := range op.States {
			for i, sub := range state.Subtasks {
				fmt.Println(op.Operator.UID, state.Name, state.Mode, i, sub.Elements, sub.Sources)
			}
		}
	}
	sp, err := plan.Apply(ctx)
	if err != nil {
		log.Fatal(err) // it cannot be written, and says why
	}
	if _, err := writer.Write(ctx, sp, "out.spt", &writer.Options{Stores: stores}); err != nil {
		log.Fatal(err)
	}
	out := open(ctx, stores, "out.spt")
	defer out.Close()
	fmt.Println(out.Operators[0].Parallelism, "subtasks in out.spt")
	// Output:
	// reader offsets union 0 6 [{0 0 3} {1 0 3}]
	// reader offsets union 1 6 [{0 0 3} {1 0 3}]
	// reader offsets union 2 6 [{0 0 3} {1 0 3}]
	// 3 subtasks in out.spt
}

// A snapshot is opened, its multiplied union state pruned, an operator dropped,
// and the result written.
func Example() {
	ctx := context.Background()
	stores := route.New(mem.New()) // local.New() for files
	seal(ctx, stores, 4)
	snap := open(ctx, stores, "in.spt")
	defer snap.Close()

	view, pruned, err := transform.PruneUnion(ctx, snap.View(), transform.PruneOptions{Keep: transform.KeepDistinct})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range pruned.States {
		fmt.Printf("%s: %d elements, %d different: %s (%s)\n", s.State, s.Elements, s.Distinct, s.Verdict, s.Why)
	}
	view, _, err = transform.Drop(ctx, view, transform.DropOptions{Operators: format.Selector{"debug-*"}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := writer.Write(ctx, view, "out.spt", &writer.Options{Stores: stores}); err != nil {
		log.Fatal(err)
	}

	out := open(ctx, stores, "out.spt")
	defer out.Close()
	for _, op := range out.Operators {
		for _, sub := range op.Subtasks {
			fmt.Println(op.UID, "subtask", sub.Index, "holds", sub.Managed.States[0].Offsets.Len())
		}
	}
	// Output:
	// offsets: 12 elements, 3 different: duplicated by restores (all 4 subtasks hold the same list)
	// reader subtask 0 holds 3
	// reader subtask 1 holds 0
	// reader subtask 2 holds 0
	// reader subtask 3 holds 0
}

// A report of its own: the largest element of each operator state, whichever
// container and engine wrote it.
func Example_report() {
	ctx := context.Background()
	stores := route.New(mem.New())
	seal(ctx, stores, 2)
	snap := open(ctx, stores, "in.spt")
	defer snap.Close()

	view := snap.View()
	for _, op := range view.Operators {
		for _, sub := range op.Subtasks {
			codec, err := view.Codec(sub.Managed.Codec)
			if err != nil {
				log.Fatal(err)
			}
			for _, state := range sub.Managed.States {
				largest := 0
				err := format.EachElement(ctx, view.Source, codec, sub.Managed, state.Name.String(), func(e format.Element) error {
					largest = max(largest, len(e.Value))
					return nil
				})
				if err != nil {
					log.Fatal(err)
				}
				fmt.Printf("%s/%s of subtask %d: %d elements of up to %d bytes\n", op.UID, state.Name, sub.Index, state.Offsets.Len(), largest)
			}
		}
	}
	// Output:
	// reader/offsets of subtask 0: 3 elements of up to 8 bytes
	// reader/offsets of subtask 1: 3 elements of up to 8 bytes
	// debug-sink/lines of subtask 0: 1 elements of up to 6 bytes
}

// seal writes in.spt: a union state of three offsets in every subtask of an
// operator, and another operator.
func seal(ctx context.Context, stores *route.Router, subtasks int32) {
	b, err := writer.NewBuilder(ctx, "in.spt", &writer.BuilderOptions{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	op := b.Operator("reader", subtasks, 128)
	for i := range subtasks {
		op.Subtask(i).Union("offsets").Add("topic-0", "topic-1", "topic-2")
	}
	b.Operator("debug-sink", 1, 128).Subtask(0).List("lines").Add("hello")
	if _, err := b.Seal(ctx); err != nil {
		log.Fatal(err)
	}
}

func open(ctx context.Context, stores *route.Router, location string) *reader.Snapshot {
	snap, err := reader.Open(ctx, location, &reader.Options{Stores: stores})
	if err != nil {
		log.Fatal(err)
	}
	return snap
}
