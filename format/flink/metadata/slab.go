package metadata

import "github.com/savepoint-tools/spt/format"

// slab allocates the nodes that come by the thousand in runs, which halves the
// time to decode a file of many small states.
type slab struct {
	subtasks   []format.Subtask
	inlines    []format.Inline
	offsetList []format.OffsetBytes
	handles    []format.OperatorHandle
	groups     []format.KeyGroups
	stateNames map[format.Text]bool
}

const slabRun = 32

func next[T any](run *[]T) *T {
	if len(*run) == 0 {
		*run = make([]T, slabRun)
	}
	p := &(*run)[0]
	*run = (*run)[1:]
	return p
}

func (s *slab) subtask() *format.Subtask       { return next(&s.subtasks) }
func (s *slab) inline() *format.Inline         { return next(&s.inlines) }
func (s *slab) offsets() *format.OffsetBytes   { return next(&s.offsetList) }
func (s *slab) handle() *format.OperatorHandle { return next(&s.handles) }
func (s *slab) keyGroups() *format.KeyGroups   { return next(&s.groups) }
