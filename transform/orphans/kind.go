package orphans

import (
	"regexp"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/reader"
)

// Kind is what a directory is for, as its name and its neighbours show.
type Kind string

// The kinds. Only in those from Shared to Snapshot can a file be unreferenced.
const (
	Shared     Kind = "shared"     // JOB/shared: files of incremental checkpoints, also merged ones
	TaskOwned  Kind = "taskowned"  // JOB/taskowned
	Checkpoint Kind = "checkpoint" // JOB/chk-N, whether it was completed or not
	Changelog  Kind = "changelog"  // JOB/dstl: files of the changelog state backend
	Snapshot   Kind = "snapshot"   // another directory with _metadata, or named as Flink names savepoints
	Working    Kind = "working"    // JOB/shared/…__attempt_N: where a running subtask keeps its state (ForSt)
	Leftover   Kind = "leftover"   // of an interrupted run of spt
	Control    Kind = "control"    // of high availability, or of the results of jobs
	Elsewhere  Kind = "elsewhere"  // anything else
)

// holdsState reports whether Flink keeps state in such a directory.
func (k Kind) holdsState() bool {
	switch k {
	case Shared, TaskOwned, Checkpoint, Changelog, Snapshot, Working:
		return true
	}
	return false
}

var (
	// Flink names each file of state by a random UUID, and each _metadata that is
	// being written with one.
	stateFile = regexp.MustCompile(`^(\._metadata\.inprogress\.)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	savepoint = regexp.MustCompile(`^savepoint-([0-9a-f]{6})-[0-9a-f]{12}$`)
	attempt   = regexp.MustCompile(`__attempt_[0-9]+$`)
	chk       = regexp.MustCompile(`^chk-[0-9]+$`)
)

func isJobID(name string) bool {
	_, ok := format.ParseOperatorID(name) // of the same length
	return ok
}

// classify determines what a directory is for. Its parent's kind is known, and so are
// the names of what is in both.
func (d *Dir) classify() {
	base, parent := objpath.Base(d.Name), objpath.Base(objpath.Dir(d.Name))
	up := d.parent
	if up == nil {
		up = &Dir{Kind: Elsewhere}
	}
	d.Kind, d.Job, d.job = Elsewhere, "", nil
	savepointOf := savepoint.FindStringSubmatch(base)
	switch {
	case up.Kind == Control || d.control || base == "job-result-store":
		d.Kind = Control
	case up.Kind == Leftover || tempname.Is(base) || isAside(base):
		d.Kind = Leftover
	case up.Kind == Shared && attempt.MatchString(base):
		d.Kind, d.Job, d.job = Working, up.Job, up.job
	case up.Kind.holdsState() && up.Kind != Snapshot:
		d.Kind, d.Job, d.job = up.Kind, up.Job, up.job
	case chk.MatchString(base):
		d.Kind, d.Job, d.job = Checkpoint, jobID(parent), d.parent
	case (base == "shared" || base == "taskowned") && (isJobID(parent) || up.isJob()):
		d.Kind, d.Job, d.job = Kind(base), jobID(parent), d.parent
	case base == "dstl" && isJobID(parent):
		d.Kind, d.Job, d.job = Changelog, parent, d.parent
	case savepointOf != nil:
		d.Kind, d.Job = Snapshot, savepointOf[1]
	case d.hasMetadata:
		d.Kind = Snapshot
	}
}

// isJob reports whether a directory is one in which a job keeps its checkpoints,
// although it is not named after the job.
func (d *Dir) isJob() bool { return d.hasCheckpoint || d.hasShared && d.hasTaskOwned }

func jobID(name string) string {
	if isJobID(name) {
		return name
	}
	return ""
}

func isAside(base string) bool {
	_, ok := tempname.IsAside(base)
	return ok
}

// note records what the name of a file or a directory in d shows about d.
func (d *Dir) note(base string, folder bool) {
	switch {
	case !folder && base == reader.MetadataName:
		d.hasMetadata = true
	case !folder:
		for _, prefix := range []string{"completedCheckpoint", "submittedJobGraph", "executionPlan"} {
			d.control = d.control || strings.HasPrefix(base, prefix)
		}
	case base == "shared":
		d.hasShared = true
	case base == "taskowned":
		d.hasTaskOwned = true
	case chk.MatchString(base):
		d.hasCheckpoint = true
	}
}
