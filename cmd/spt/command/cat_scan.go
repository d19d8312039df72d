package command

import (
	"bytes"
	"context"
	"io"

	"github.com/savepoint-tools/spt/format"
)

// entryScan reads the chosen entries of some key groups of a handle, as they are stored.
type entryScan struct {
	c      *catter
	part   *catPart
	ctx    context.Context
	passes []format.KeyedSelection
	cur    format.KeyedCursor
	read   int
	// last is the state, the key and the namespace of the entry before, for --keys-only.
	last struct {
		state          int
		key, namespace []byte
	}
}

// newEntryScan returns a scan of the chosen entries of a part in some key groups. It opens
// nothing yet.
func newEntryScan(ctx context.Context, c *catter, part *catPart, groups format.KeyGroupRange) *entryScan {
	read := part.keyed
	s := &entryScan{c: c, ctx: ctx, part: part}
	s.last.state = -1
	for i, st := range read.states {
		chosen := &read.chosen[i]
		from := groups
		if chosen.groups.Count > 0 {
			from = from.Intersect(chosen.groups)
		}
		if st == nil || chosen.none || from.Count == 0 {
			continue
		}
		// States of one handle have the same key, as a rule.
		k := 0
		for k < len(s.passes) && (s.passes[k].Groups != from || !bytes.Equal(s.passes[k].Key, chosen.key)) {
			k++
		}
		if k == len(s.passes) {
			s.passes = append(s.passes, format.KeyedSelection{Groups: from, Key: chosen.key})
		}
		s.passes[k].States = append(s.passes[k].States, i)
	}
	return s
}

// next returns the next chosen entry, valid until the next call, or io.EOF.
func (s *entryScan) next() (format.KeyedEntry, error) {
	for {
		if s.read%checkEvery == 0 {
			if err := s.ctx.Err(); err != nil {
				return format.KeyedEntry{}, err
			}
		}
		s.read++
		x, err := s.entry()
		if err != nil {
			return x, err
		}
		chosen := &s.part.keyed.chosen[x.State]
		if chosen.namespace != nil && !bytes.Equal(x.Namespace, chosen.namespace) || chosen.userKey != nil && !bytes.Equal(x.UserKey, chosen.userKey) {
			continue
		}
		if chosen.keys != nil {
			if x.Key == nil {
				continue
			}
			if ok, err := chosen.keys.has(x.Key); err != nil {
				return x, s.c.placed(&notReadable{format.At(err, "key group %d/state %q/key", x.KeyGroup, s.part.keyed.states[x.State].name)}, s.part)
			} else if !ok {
				continue
			}
		}
		if s.c.keysOnly && x.Key != nil && s.repeats(&x) {
			continue
		}
		return x, nil
	}
}

// checkEvery is the number of entries after which a loop looks whether it is cancelled.
const checkEvery = 4096

// entry returns the next entry of the cursor, and opens the cursor of the next pass.
func (s *entryScan) entry() (format.KeyedEntry, error) {
	for {
		if s.cur == nil {
			if len(s.passes) == 0 {
				return format.KeyedEntry{}, io.EOF
			}
			r := s.part.keyed
			cur, err := r.codec.Entries(s.ctx, s.c.snap.Source(), r.h, s.passes[0])
			if err != nil {
				return format.KeyedEntry{}, s.c.placed(err, s.part)
			}
			s.cur, s.passes = cur, s.passes[1:]
		}
		x, err := s.cur.Next()
		if err == nil {
			return x, nil
		}
		if err == io.EOF {
			err = s.cur.Close()
			s.cur = nil
		}
		if err != nil {
			return format.KeyedEntry{}, s.c.placed(err, s.part)
		}
	}
}

// repeats reports whether an entry has the state, the key and the namespace of the one
// before. Timers of one key differ.
func (s *entryScan) repeats(x *format.KeyedEntry) bool {
	if s.part.keyed.schema.States[x.State].Kind == kindOfTimers {
		return false
	}
	if s.last.state == x.State && bytes.Equal(s.last.key, x.Key) && bytes.Equal(s.last.namespace, x.Namespace) {
		return true
	}
	s.last.state, s.last.key, s.last.namespace = x.State, append(s.last.key[:0], x.Key...), append(s.last.namespace[:0], x.Namespace...)
	return false
}

// kindOfTimers is the kind of the states of timers.
const kindOfTimers = "timers"

// close closes the cursor, whose errors no longer matter: nothing was written.
func (s *entryScan) close() {
	if s.cur != nil {
		_ = s.cur.Close()
		s.cur = nil
	}
}

const (
	// batchBytes and batchEntries bound a batch: it ends with the entry that reaches
	// one of them.
	batchBytes   = 256 << 10
	batchEntries = 2048
)

// entryBatch is copies of entries that are decoded together.
type entryBatch struct {
	entries []format.KeyedEntry
	bytes   []byte // of the entries
}

// Size returns the bytes of the entries.
func (b *entryBatch) Size() int64 { return int64(len(b.bytes)) }

// fill reads entries, at most some unless most is 0. It returns nil if more may follow,
// io.EOF at the end of the scan, or the error of the entry that follows the batch.
func (b *entryBatch) fill(s *entryScan, most int64) error {
	n := batchEntries
	if most > 0 {
		n = int(min(most, batchEntries))
	}
	for len(b.entries) < n && len(b.bytes) < batchBytes {
		x, err := s.next()
		if err != nil {
			return err
		}
		if x.Key != nil {
			x.Stored = nil // it has the same bytes
		}
		for _, p := range []*[]byte{&x.Key, &x.Namespace, &x.UserKey, &x.Value, &x.Stored} {
			*p = b.keep(*p)
		}
		b.entries = append(b.entries, x)
	}
	return nil
}

func (b *entryBatch) keep(p []byte) []byte {
	if p == nil {
		return nil
	}
	n := len(b.bytes)
	b.bytes = append(b.bytes, p...)
	return b.bytes[n:len(b.bytes):len(b.bytes)]
}

// newEntryBatch returns an empty batch.
func (r *catReaders) newEntryBatch() *entryBatch {
	if b, ok := r.batches.Get().(*entryBatch); ok {
		b.entries, b.bytes = b.entries[:0], b.bytes[:0]
		return b
	}
	return &entryBatch{entries: make([]format.KeyedEntry, 0, batchEntries), bytes: make([]byte, 0, batchBytes+batchBytes/8)}
}

// unusedBatch takes a batch to be used again: if elements are kept, they refer to it.
func (r *catReaders) unusedBatch(b *entryBatch) {
	if r.lines != nil && cap(b.bytes) <= 4*batchBytes {
		r.batches.Put(b)
	}
}
