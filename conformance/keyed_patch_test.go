package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/transform"
)

// What patchKeyed makes of an entry of the job: other values and map values, entries that
// are removed, timers that are removed and added at another time.
const (
	patchKeyedValue  = "last"
	patchKeyedMap    = "counts"
	patchKeyedMapTo  = 7
	patchKeyedGone   = "label" // removed
	patchKeyedTimers = "_timer_state/event_user-timers"
)

// patchedEntry returns the value of an entry after the patch.
func patchedEntry(state string, e Entry) (Entry, bool) {
	switch state {
	case patchKeyedValue:
		n, err := strconv.ParseInt(string(e.Value), 10, 64)
		if err != nil {
			panic(err)
		}
		e.Value = Value(strconv.FormatInt(n+1, 10))
	case patchKeyedMap:
		var pairs [][2]json.RawMessage
		if err := json.Unmarshal([]byte(e.Value), &pairs); err != nil {
			panic(err)
		}
		for i := range pairs {
			pairs[i][1] = json.RawMessage(strconv.Itoa(patchKeyedMapTo))
		}
		p, err := json.Marshal(pairs)
		if err != nil {
			panic(err)
		}
		e.Value = Value(p)
	}
	return e, state != patchKeyedGone
}

// patchKeyed patches the keyed state of a job. All entries of one key are removed first, and
// added again, changed like the others: then the key is a new one, whose key group is
// computed.
func patchKeyed(_ *testing.T, in format.View) (format.View, error) {
	ctx := context.Background()
	var first, second []transform.PatchChange
	for _, op := range in.Operators {
		if op.ID != format.OperatorIDOf("keyed") {
			continue
		}
		var newKey []byte
		for _, sub := range op.Subtasks {
			for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
				if h == nil {
					continue
				}
				err := patchesOf(ctx, in, op, h, func(c transform.PatchChange, to transform.PatchChange, changed bool) {
					if newKey == nil {
						newKey = c.Key
					}
					isNew := bytes.Equal(c.Key, newKey)
					if c.State == patchKeyedGone || isNew || c.State == patchKeyedTimers {
						c.Op, c.Value = transform.PatchRemove, transform.PatchValue{}
						first = append(first, c)
						if c.State == patchKeyedGone {
							return
						}
						to.Op = transform.PatchAdd
						if isNew {
							second = append(second, to)
							return
						}
					}
					if changed {
						first = append(first, to)
					}
				})
				if err != nil {
					return in, err
				}
			}
		}
	}
	for _, changes := range [][]transform.PatchChange{first, second} {
		var done *transform.PatchReport
		var err error
		in, done, err = transform.Patch(ctx, in, transform.PatchOptions{
			Values: func(context.Context, *format.OperatorHandle, int) (value.ElementCodecs, error) {
				return value.ElementCodecs{}, nil
			},
			Changes: func(yield func(transform.PatchChange, error) bool) {
				for _, c := range changes {
					if !yield(c, nil) {
						return
					}
				}
			},
		})
		if err == nil && (len(done.States) < 3 || done.Entries == 0) {
			err = fmt.Errorf("%d states were patched", len(done.States))
		}
		if err != nil {
			return in, err
		}
	}
	return in, nil
}

// patchesOf calls f with each entry of a handle: a change that names it, and one to what the
// patch makes of it.
func patchesOf(ctx context.Context, in format.View, op *format.Operator, h format.KeyedHandle, f func(c, to transform.PatchChange, changed bool)) error {
	codec, err := in.KeyedCodec(op, h)
	if err != nil {
		return err
	}
	schema, err := codec.Describe(ctx, in.Source, h)
	if err != nil {
		return err
	}
	codecs, err := value.EntryCodecsOf(ctx, in.Source, codec, h)
	if err != nil {
		return err
	}
	return format.EachKeyedEntry(ctx, in.Source, codec, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
		e = e.Clone()
		text := func(c value.Codec, p []byte) []byte {
			v, readErr := value.ReadAll(c, p)
			if readErr != nil && err == nil {
				err = readErr
			}
			return v.AppendJSON(nil, nil, nil)
		}
		state := schema.States[e.State].Name.String()
		entry := transform.PatchEntry{}
		c := transform.PatchChange{Operator: op.ID, State: state, Subtask: transform.AllSubtasks, Index: transform.NoIndex, Key: text(codecs[e.State].Key, e.Key), Entry: &entry}
		if e.UserKey != nil {
			entry.UserKey.JSON = text(codecs[e.State].UserKey, e.UserKey)
		}
		to, changed := c, true
		switch {
		case strings.HasPrefix(state, "_timer_state/"):
			moved := entry
			at, later := e.Time, e.Time
			if changed = state == patchKeyedTimers; changed {
				later += shiftedBy.Milliseconds()
			}
			entry.Time, moved.Time = &at, &later
			to.Entry = &moved
		case state == patchKeyedMap:
			to.Value.JSON = []byte(strconv.Itoa(patchKeyedMapTo))
		case state == patchKeyedValue:
			new, _ := patchedEntry(state, Entry{Value: Value(text(codecs[e.State].Value, e.Value))})
			to.Value.JSON = []byte(new.Value)
		default:
			to.Value.Stored, changed = e.Value, false
		}
		f(c, to, changed)
		return err
	})
}
