package watch

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// job is the checkpoints of one directory.
type job struct {
	name     string
	patience int                   // see Options.Tries
	seen     map[string]*directory // by path: what is listed now
	history  []*Checkpoint         // oldest first, also of checkpoints that were removed since
	firing   map[string][]string   // by rule: what it holds for
	looks    int
}

// directory is a chk-N that is listed.
type directory struct {
	id         int64
	checkpoint *Checkpoint // nil: not read
	old        bool        // not to be read: there were enough newer ones at the first look
	tries      int         // that found no _metadata, or a damaged one
	damaged    error       // of the last of them
	next       int         // the look at which it is tried again
}

// mostDoublings bounds how seldom a directory is tried that holds no checkpoint: Flink
// leaves directories of checkpoints that failed. The pause begins with one look.
const mostDoublings = 6

// newest returns the newest checkpoint that is still listed, or nil.
func (j *job) newest(fit func(*Checkpoint) bool) *Checkpoint {
	var found *Checkpoint
	for _, d := range j.seen {
		if c := d.checkpoint; c != nil && fit(c) && (found == nil || older(found, c) < 0) {
			found = c
		}
	}
	return found
}

func anyCheckpoint(*Checkpoint) bool { return true }

// due returns the directories to read, by id. Of many at the first look, only the last
// ones are read.
func (j *job) due(listed []reader.Checkpoint, window int) []string {
	j.looks++
	here := map[string]int64{}
	for _, c := range listed {
		here[c.Path] = c.ID
	}
	maps.DeleteFunc(j.seen, func(path string, _ *directory) bool { _, ok := here[path]; return !ok })
	last := int64(-1)
	if c := j.newest(anyCheckpoint); c != nil {
		last = c.ID
	}
	var due []string
	for path, id := range here {
		d := j.seen[path]
		if d == nil {
			d = &directory{id: id}
			j.seen[path] = d
		}
		if d.checkpoint == nil && !d.old && (j.looks >= d.next || d.damaged == nil && id > last) {
			due = append(due, path)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return cmp.Or(cmp.Compare(here[a], here[b]), cmp.Compare(a, b)) })
	if more := len(due) - window; j.looks == 1 && more > 0 {
		for _, path := range due[:more] {
			j.seen[path].old = true
		}
		due = due[more:]
	}
	return due
}

// take notes what reading a directory returned. It returns an error of the store; what is
// wrong with the checkpoint itself is noted.
func (j *job) take(path string, c *Checkpoint, err error, window int) error {
	d := j.seen[path]
	switch {
	case err == nil:
		d.checkpoint, d.damaged = c, nil
		j.history = append(j.history, c)
		slices.SortFunc(j.history, older)
		if more := len(j.history) - window; more > 0 {
			j.history = slices.Delete(j.history, 0, more)
		}
		return nil
	case isDamage(err):
		d.damaged = err
	case errors.Is(err, storage.ErrNotExist), errors.Is(err, format.ErrMissing):
		d.damaged = nil // not written yet, or removed since it was listed
	default:
		return err
	}
	d.tries++
	d.next = j.looks + 1<<min(d.tries-1, mostDoublings)
	return nil
}

// isDamage reports whether an error is about the bytes of a checkpoint, not the store.
func isDamage(err error) bool {
	return errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrChanged) || errors.Is(err, format.ErrLimit) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, io.ErrUnexpectedEOF)
}

// damaged returns the paths of checkpoints that cannot be read, and were not just being
// written.
func (j *job) damaged() []string {
	var all []string
	for path, d := range j.seen {
		if d.damaged != nil && d.tries >= j.patience {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

// past returns the history up to the newest checkpoint.
func (j *job) past(newest *Checkpoint) []*Checkpoint {
	return j.history[:slices.Index(j.history, newest)+1]
}
