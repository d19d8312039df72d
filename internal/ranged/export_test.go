package ranged

import "time"

// SetPause sets the pause before a second resume.
func (s *Scheduler) SetPause(d time.Duration) { s.pause = d }
