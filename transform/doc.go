// Package transform rewrites savepoints: each transform takes a view of one and
// gives another view, with a report of what it did. Nothing is read until the
// result is, and nothing is written: that is the writer's. What a transform
// does not touch is shared with its input and copied byte for byte.
//
// State is read and rebuilt through the codecs that the reader hands over, so
// Flink snapshots and the state of Go programs are treated alike.
//
//	plan, err := transform.PlanRescale(ctx, in, transform.RescaleOptions{To: 4})
//	…                                     // print it, review it
//	sp, err := plan.Apply(ctx)            // the savepoint in its new shape
package transform
