// Package transform edits savepoints: each transform takes a view and returns
// another view, with a report of the changes. State is read when the result is
// read. Nothing is written: use package writer for that. Parts that a transform
// does not change are shared with its input and copied byte for byte.
//
// State is read and rebuilt by the codecs of the view, so Flink snapshots and the
// state of Go programs are treated alike.
//
//	plan, err := transform.PlanRescale(ctx, in, transform.RescaleOptions{To: 4})
//	…                                     // print it, review it
//	sp, err := plan.Apply(ctx)            // the savepoint in its new shape
package transform
