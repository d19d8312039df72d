package metadata

import "github.com/savepoint-tools/spt/format"

// slab allocates the nodes that come by the thousand in runs, which halves the
// time to decode a file of many small states.
type slab struct {
	subtasks   run[format.Subtask]
	inlines    run[format.Inline]
	offsetList run[format.OffsetBytes]
	handles    run[format.OperatorHandle]
	groups     run[format.KeyGroups]
	stateNames map[string]bool // of the handle being read
}

// run is what is left of a run; the next one is twice as long, up to 64.
type run[T any] struct {
	left []T
	size int
}

func (r *run[T]) next() *T {
	if len(r.left) == 0 {
		r.size = min(max(1, 2*r.size), 64)
		r.left = make([]T, r.size)
	}
	p := &r.left[0]
	r.left = r.left[1:]
	return p
}

func (s *slab) subtask() *format.Subtask       { return s.subtasks.next() }
func (s *slab) inline() *format.Inline         { return s.inlines.next() }
func (s *slab) offsets() *format.OffsetBytes   { return s.offsetList.next() }
func (s *slab) handle() *format.OperatorHandle { return s.handles.next() }
func (s *slab) keyGroups() *format.KeyGroups   { return s.groups.next() }
