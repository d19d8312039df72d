package orphans

import (
	"regexp"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/route"
)

// Place is what a directory is for, as its name and its neighbours show.
type Place string

// The places. Only in those from Shared to Snapshot can a file be unreferenced.
const (
	Shared     Place = "shared"     // JOB/shared: files of incremental checkpoints, also merged ones
	TaskOwned  Place = "taskowned"  // JOB/taskowned
	Checkpoint Place = "checkpoint" // JOB/chk-N, whether it was completed or not
	Changelog  Place = "changelog"  // JOB/dstl: files of the changelog state backend
	Snapshot   Place = "snapshot"   // another directory with _metadata, or named as Flink names savepoints
	Working    Place = "working"    // JOB/shared/…__attempt_N: where a running subtask keeps its state (ForSt)
	Leftover   Place = "leftover"   // of an interrupted run of spt
	Control    Place = "control"    // of high availability, or of the results of jobs
	Elsewhere  Place = "elsewhere"  // anything else
)

// holdsState reports whether Flink keeps state in such a directory.
func (p Place) holdsState() bool {
	switch p {
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

// place determines what a directory is for. Its parent's place is known, and so are
// the names of what is in both.
func (d *Dir) place() {
	base, parent := route.Base(d.Name), route.Base(route.Dir(d.Name))
	up := d.parent
	if up == nil {
		up = &Dir{Place: Elsewhere}
	}
	d.Place, d.Job, d.job = Elsewhere, "", nil
	savepointOf := savepoint.FindStringSubmatch(base)
	switch {
	case up.Place == Control || d.control || base == "job-result-store":
		d.Place = Control
	case up.Place == Leftover || storage.IsTemp(base) || isAside(base):
		d.Place = Leftover
	case up.Place == Shared && attempt.MatchString(base):
		d.Place, d.Job, d.job = Working, up.Job, up.job
	case up.Place.holdsState() && up.Place != Snapshot:
		d.Place, d.Job, d.job = up.Place, up.Job, up.job
	case chk.MatchString(base):
		d.Place, d.Job, d.job = Checkpoint, jobID(parent), d.parent
	case (base == "shared" || base == "taskowned") && (isJobID(parent) || up.isJob()):
		d.Place, d.Job, d.job = Place(base), jobID(parent), d.parent
	case base == "dstl" && isJobID(parent):
		d.Place, d.Job, d.job = Changelog, parent, d.parent
	case savepointOf != nil:
		d.Place, d.Job = Snapshot, savepointOf[1]
	case d.hasMetadata:
		d.Place = Snapshot
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
	_, ok := storage.IsAside(base)
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
