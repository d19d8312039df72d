package keyed

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// KeyHasher returns a function that computes the hash code in Java of the keys of a
// handle from their bytes. See [types.KeyHasher].
func (c *Codec) KeyHasher(ctx context.Context, src format.Source, h format.KeyedHandle) (func(key []byte) (int32, error), error) {
	o, err := c.open(ctx, src, h)
	if err != nil {
		return nil, err
	}
	key := o.header.Key
	if key == nil && len(o.access) > 0 { // only timers
		key = o.access[0].key.of
	}
	return types.KeyHasher(key, c.Types)
}
