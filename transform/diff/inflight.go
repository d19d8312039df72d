package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// inFlight compares the in-flight data, channel by channel.
func (d *differ) inFlight(o *Operator, st *State) error {
	if d.o.Ignore[KindInFlight] {
		return nil
	}
	switch {
	case st.Old == nil:
		d.add(KindInFlight, o, st, "in-flight data added")
		return nil
	case st.New == nil:
		d.add(KindInFlight, o, st, "in-flight data removed")
		return nil
	}
	x, err := d.channels(d.a, o.old)
	if err != nil {
		return format.InFile(err, d.a.Location)
	}
	y, err := d.channels(d.b, o.new)
	if err != nil {
		return format.InFile(err, d.b.Location)
	}
	if !maps.Equal(x, y) {
		d.add(KindInFlight, o, st, "in-flight data changed")
	}
	return nil
}

// inFlightOf is the data of one handle of a subtask's channels.
type inFlightOf struct {
	subtask  int32
	output   bool
	number   int
	channels string
	data     fileContent
}

func (d *differ) channels(in format.View, op *format.Operator) (map[inFlightOf]bool, error) {
	set := map[inFlightOf]bool{}
	known := map[format.StreamKey]fileContent{} // handles share streams
	for _, sub := range op.Subtasks {
		for output, handles := range map[bool][]*format.ChannelHandle{false: sub.Input, true: sub.Output} {
			for i, h := range handles {
				f := inFlightOf{subtask: sub.Index, output: output, number: i}
				var b strings.Builder
				channels := slices.Clone(h.Channels)
				slices.SortStableFunc(channels, func(x, y format.Channel) int {
					return cmp.Or(cmp.Compare(x.First, y.First), cmp.Compare(x.Second, y.Second))
				})
				for _, c := range channels {
					fmt.Fprintf(&b, "%d/%d %d:", c.First, c.Second, c.Size)
					if c.Offsets == nil {
						continue
					}
					err := format.EachOffset(d.ctx, c.Offsets, func(_ int64, run []int64) error {
						fmt.Fprintf(&b, "%d", run)
						return nil
					})
					if err != nil {
						return nil, err
					}
				}
				f.channels = b.String()
				if h.Data != nil {
					key := h.Data.Key()
					c, ok := known[key]
					if !ok {
						n, err := d.size(in, h.Data)
						if err == nil {
							c, err = d.contentOf(in, rangeOf{h.Data, 0, n})
						}
						if err != nil {
							return nil, format.At(err, "subtask %d", sub.Index)
						}
						known[key] = c
					}
					f.data = c
				}
				set[f] = true
			}
		}
	}
	return set, nil
}
