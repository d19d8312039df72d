// Package export turns what package watch knows into Prometheus metrics: for a server,
// and for the textfile collector of the node exporter.
//
// [Metrics] is the one table of names and texts, from which docs/watch.md is made. The
// package does not look at checkpoints.
//
//	c := export.New(export.Options{Status: w.Status, MaxSeries: 5000})
//	s, err := export.Listen("127.0.0.1:9929", c)
//	err = s.Serve(ctx)
package export
