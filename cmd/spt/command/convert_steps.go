package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
	"github.com/savepoint-tools/spt/writer"
)

// recompress is the snapshot with state as --state-compression wants it.
func (o *convertOptions) recompress(ctx context.Context, env *Env, snap *reader.Snapshot) (*reader.Snapshot, []transform.KeptHandle, error) {
	stop := env.reading("reading", allState(snap))
	defer stop()
	v, done, err := transform.Recompress(ctx, snap.View(), transform.RecompressOptions{Compress: o.state == report.Snappy, Keyed: keyed.Recompress})
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	more := o.note
	o.note = func(r *report.Write) {
		if more != nil {
			more(r)
		}
		r.StateCompression, r.Recompressed = o.state, done.Handles
		r.KeptCompression = keptHandles(env, done.Kept)
	}
	return snap.With(v.Savepoint), done.Kept, nil
}

func keptHandles(env *Env, all []transform.KeptHandle) (out []report.Kept) {
	for _, k := range all {
		out = append(out, report.Kept{
			Operator: env.run.Label(k.Operator), ID: k.Operator.ID.String(), What: k.Slot.String(), Handles: k.Handles, Why: env.run.Hide(k.Why),
		})
	}
	return out
}

// The values of --keyed.
const (
	keepKeyed      = "keep"
	canonicalKeyed = "canonical"
)

// canonical is the snapshot with its keyed state in the canonical format.
func (o *convertOptions) canonical(ctx context.Context, env *Env, snap *reader.Snapshot) (*reader.Snapshot, []transform.KeptHandle, error) {
	stop := env.reading("reading", allState(snap))
	defer stop()
	v, done, err := transform.Canonical(ctx, snap.View(), transform.CanonicalOptions{Jobs: env.readJobs(snap)})
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	more := o.note
	o.note = func(r *report.Write) {
		if more != nil {
			more(r)
		}
		r.Keyed, r.KeyedRebuilt, r.KeyedEntries, r.KeptKeyed = o.keyed, done.Handles, done.Entries, keptHandles(env, done.Kept)
	}
	return snap.With(v.Savepoint), done.Kept, nil
}

// writesSPT reports whether out becomes an .spt file.
func (o *convertOptions) writesSPT(out string) bool {
	return o.to == string(reader.SPT) || o.to == "" && strings.HasSuffix(strings.TrimRight(out, "/"), reader.Extension)
}

// forRelease is the snapshot as the release of --flink reads it.
func (o *convertOptions) forRelease(ctx context.Context, env *Env, snap *reader.Snapshot, out string) (*reader.Snapshot, error) {
	if o.writesSPT(out) {
		return nil, usagef("--flink needs a Flink directory as output: no release of Flink reads .spt files")
	}
	o.opts.Family = reader.Flink
	stop := env.reading("reading", nil)
	defer stop()
	unread, err := check.TypesFor(ctx, snap.Savepoint, snap.Schema, snap.Container.Metadata, o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	v, rebuilt, err := transform.Reencode(ctx, snap.View(), transform.ReencodeOptions{Release: o.release})
	if err != nil {
		return nil, inContainer(err, snap)
	}
	sp, lost, err := metadata.ForRelease(v.Savepoint, o.release)
	if err != nil {
		return nil, inContainer(err, snap)
	}
	if !o.release.Facts().MergedFiles() && (o.keepReferences || o.opts.Files == writer.Reference) && metadata.HoldsMerged(sp) {
		return nil, format.Errorf(format.ErrUnsupported, "Flink %v does not know segments of merged files: --files copy makes files of them", o.release)
	}
	more := o.note
	o.note = func(r *report.Write) {
		if more != nil {
			more(r)
		}
		r.Release, r.Rebuilt, r.Lost = o.release.String(), rebuilt.Handles, append(lost, r.Lost...)
		if len(unread) > 0 {
			r.Remarks = append(r.Remarks, fmt.Sprintf("it is not known whether Flink %v has the types of all states: %s", o.release, env.run.Hide(unread[0].Error())))
		}
	}
	return snap.With(sp), nil
}
