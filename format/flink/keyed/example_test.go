package keyed_test

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/reader"
)

// Read the values of a state of the subtasks of an operator, whatever backend wrote
// them.
func ExampleCodec_Entries() {
	ctx := context.Background()
	snap, err := reader.Open(ctx, "../../../testdata/savepoints/sp-003/000000000000000000000000005b706e/chk-3", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer snap.Close() //nolint:errcheck // nothing was written
	for _, op := range snap.Operators {
		codec := &keyed.Codec{MaxParallelism: op.MaxParallelism}
		for _, sub := range op.Subtasks {
			h := sub.ManagedKeyed
			if h == nil {
				continue
			}
			schema, err := codec.Schema(ctx, snap.Source(), h)
			if err != nil {
				fmt.Println(err)
				return
			}
			keys, _ := types.CodecOf(schema.Key)
			for i, st := range schema.States {
				if st.Keyed != "value" {
					continue
				}
				values, _ := types.CodecOf(st.Serializer("VALUE_SERIALIZER"))
				sel := format.KeyedSelection{States: []int{i}}
				err := format.EachKeyedEntry(ctx, snap.Source(), codec, h, sel, func(e format.KeyedEntry) error {
					k, err := value.ReadAll(keys, e.Key)
					if err != nil {
						return err
					}
					v, err := value.ReadAll(values, e.Value)
					if err == nil {
						fmt.Printf("%s[%v] = %v (key group %d)\n", st.Name, k, v, e.KeyGroup)
					}
					return err
				})
				if err != nil {
					fmt.Println(err)
				}
			}
		}
	}
	// Output:
	// count[-5] = 2 (key group 7)
	// count[-2] = 2 (key group 86)
	// count[-1] = 2 (key group 94)
	// count[-4] = 2 (key group 113)
	// count[-6] = 2 (key group 126)
	// count[-3] = 2 (key group 127)
}
